/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Included before everything else: functions that have a better one, or no safe use. */
#ifndef BID_BASE_BANNED_H
#define BID_BASE_BANNED_H

/* first the headers that declare them, so that only uses are refused */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#pragma GCC poison strcpy strcat strncpy strncat sprintf vsprintf strtok gets atoi atol mktemp tempnam tmpnam
#pragma GCC poison localtime gmtime asctime popen

#endif
