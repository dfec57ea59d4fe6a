/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Text that comes from anywhere, made fit for a terminal: by everything that is printed, logged or shown as JSON. */
#ifndef BID_BASE_ESCAPE_H
#define BID_BASE_ESCAPE_H

enum bid_escape_form {
	BID_ESCAPE_TEXT, /* "\xNN" for each byte: one line without tabs */
	BID_ESCAPE_JSON, /* "\uNNNN" in JSON that is whole: white space between values stays */
};

/*
 * A copy of @text in which nothing is left that a terminal obeys instead of showing it: control characters of ASCII and those from
 * U+0080 to U+009F, as UTF-8 or as bytes, and what changes the direction of the text or begins a line (Unicode, UAX 9 and 14). The
 * caller frees it; NULL for want of memory.
 */
char *bid_escape(const char *text, enum bid_escape_form form);

#endif
