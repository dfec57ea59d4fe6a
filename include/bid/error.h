/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Errors. A function of libbid returns 0 (or a count) for success, and a negative errno for failure; a failure leaves the ret_*
 * parameters alone, unless its comment has an exception. Some errno values have a meaning of their own:
 *
 *   -ENOENT		absent: the store lacks the artifact, and so does every server
 *   -EINPROGRESS	not in the store; a server may have the artifact
 *   -EHOSTUNREACH	unknown: no server sent the artifact, and at least one was not reached
 *   -ETIMEDOUT		unknown: the wait is over; a download with a sent request continues
 *   -EBADMSG		the file has another id or another kind than the request
 *   -ENOTUNIQ		the store has another build under the first 20 bytes of this id, and keeps it
 *   -EFBIG		larger than the configured limit, in the store or on the server
 *   -ENOEXEC		not an ELF file
 *   -ENODATA		an ELF file without a build-id
 *   -EINTR		the caller cancelled the request
 *   -EROFS		the store is open for reading only
 *   others		as the system call that failed
 */
#ifndef BID_ERROR_H
#define BID_ERROR_H

/* Describe @error by its meaning above, or as strerror(3). @error may have either sign. */
const char *bid_strerror(int error);

#endif
