/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Escape untrusted text for a terminal: for all output, messages and JSON. */
#ifndef BID_BASE_ESCAPE_H
#define BID_BASE_ESCAPE_H

enum bid_escape_form {
	BID_ESCAPE_TEXT, /* "\xNN" for each byte: one line without tabs */
	BID_ESCAPE_JSON, /* "\uNNNN" in JSON that is whole: white space between values stays */
};

/*
 * Return a copy of @text with all control sequences escaped: control characters of ASCII and from U+0080 to U+009F, as UTF-8 or as
 * bytes, and characters that change the direction of the text or begin a line (Unicode, UAX 9 and 14). The caller frees it; NULL
 * for want of memory.
 */
char *bid_escape(const char *text, enum bid_escape_form form);

#endif
