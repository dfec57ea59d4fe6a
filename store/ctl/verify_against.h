/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* bidctl verify --against: the digests that a list, or the packages of this machine, have of files. */
#ifndef BID_CTL_VERIFY_AGAINST_H
#define BID_CTL_VERIFY_AGAINST_H

#include "api/verify.h"
#include "ctl/ctl.h"

struct ctl_against;

/*
 * Read the list of ctl->against. Returns CTL_DONE, or the exit status after an error message. The caller frees @ret_against with
 * ctl_against_free().
 */
enum ctl_status ctl_against_load(const struct ctl *ctl, struct ctl_against **ret_against);

/* @against may be NULL. */
void ctl_against_free(struct ctl_against *against);

/* bid_verify_config.compare of @against. */
int ctl_against_compare(struct ctl_against *against, const struct bid_artifact *artifact, const char *path, int fd,
			char ret_text[static BID_VERIFY_TEXT_MAX]);

/* With --verbose or --json, print the files that match, and those that are not listed. Returns their numbers. */
void ctl_against_report(const struct ctl_against *against, size_t *ret_vouched, size_t *ret_unlisted);

#endif
