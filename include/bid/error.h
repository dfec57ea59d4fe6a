/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Errors. Every function of libbid that can fail returns 0 (or a count) for success and a negative errno otherwise; values
 * handed out through ret_* parameters are left alone on failure. Where errno values mean something of our own, it is this:
 *
 *   -ENOENT		absent: proven, by everybody who could have it
 *   -EINPROGRESS	not here; a source may have it (bid_broker_find() only)
 *   -EHOSTUNREACH	unknown: no source said yes, and at least one could not be asked
 *   -ETIMEDOUT		unknown: the bounded wait is over; what was begun goes on
 *   -EBADMSG		the content does not carry the id it was asked under, or is not of the kind
 *   -ENOTUNIQ		another build is filed under the 20 bytes to which perf's layout cuts this id, and stays
 *   -EFBIG		larger than the configured limit, here or at the source
 *   -ENOEXEC		not an ELF file
 *   -ENODATA		an ELF file without a build-id
 *   -EINTR		the caller gave up
 *   -EROFS		the store was opened for reading only
 *   others		as the system call that failed
 */
#ifndef BID_ERROR_H
#define BID_ERROR_H

/* One of the meanings above as a phrase for a message, or strerror() of anything else. @error may have either sign. */
const char *bid_strerror(int error);

#endif
