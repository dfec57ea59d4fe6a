/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Text: untrusted text for a terminal, UTF-8, mistyped words. */
#ifndef BID_BASE_TEXT_H
#define BID_BASE_TEXT_H

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

/* Copy @bytes as UTF-8, with U+FFFD for invalid sequences. The caller frees it; NULL for want of memory. */
char *bid_utf8(const char *bytes);

/*
 * Return the first of @names (NULL-terminated) that begins with @word; else the first that differs from it in one letter, or in the
 * order of two neighbours. Returns NULL without such a name.
 */
const char *bid_did_you_mean(const char *word, const char *const *names);

#endif
