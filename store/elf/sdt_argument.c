// SPDX-License-Identifier: LGPL-2.1-or-later
#include "sdt_argument.h"

#include <elf.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* A part of the arguments' text. */
struct part {
	const char *text;
	size_t len;
};

static bool part_is(const struct part *part, const char *text)
{
	return part->len == strlen(text) && memcmp(part->text, text, part->len) == 0;
}

static bool part_begins(const struct part *part, char c)
{
	return part->len > 0 && part->text[0] == c;
}

static void skip_chars(struct part *part, size_t n)
{
	part->text += n;
	part->len -= n;
}

/* Take the leading digits off @part. */
static struct part take_digits(struct part *part)
{
	struct part digits = { .text = part->text };

	while (digits.len < part->len && part->text[digits.len] >= '0' && part->text[digits.len] <= '9')
		digits.len++;
	skip_chars(part, digits.len);
	return digits;
}

/* Is the number @digits from @min to @max? */
static bool in_range(const struct part *digits, unsigned long min, unsigned long max)
{
	unsigned long number = digits->len > 0 ? strtoul(digits->text, NULL, 10) : ULONG_MAX;

	return number >= min && number <= max;
}

/*
 * Translate an assembler's register name into the kernel's, for each part of a register: "ax" for rax, eax, ax, al, ah; "r8" for
 * r8, r8d.
 */
static bool x86_register(const struct part *name, char ret_name[static 4])
{
	static const char *const old[] = { "ax", "bx", "cx", "dx", "si", "di", "bp", "sp" };
	struct part rest = *name, digits;

	for (size_t i = 0; i < sizeof(old) / sizeof(old[0]); i++) {
		bool wide = name->len == 3 && (part_begins(name, 'r') || part_begins(name, 'e')) &&
			    memcmp(name->text + 1, old[i], 2) == 0;
		bool part = i < 4 ? name->len == 2 && name->text[0] == old[i][0] && strchr("lh", name->text[1])
				  : name->len == 3 && memcmp(name->text, old[i], 2) == 0 && name->text[2] == 'l';

		if (wide || part || part_is(name, old[i])) {
			memcpy(ret_name, old[i], 3);
			return true;
		}
	}
	if (!part_begins(&rest, 'r'))
		return false;
	skip_chars(&rest, 1);
	digits = take_digits(&rest);
	if (!in_range(&digits, 8, 15) || digits.len > 2 || rest.len > 1 || (rest.len == 1 && !strchr("dwb", rest.text[0])))
		return false;
	snprintf(ret_name, 4, "r%.*s", (int)digits.len, digits.text);
	return true;
}

/* "%REGISTER", "(%REGISTER)" or "NUMBER(%REGISTER)", with a sign or without */
static bool x86_operand(struct part operand, char *ret_text, size_t size)
{
	char sign = part_begins(&operand, '-') ? '-' : '+', name[4];
	struct part digits;

	if (part_begins(&operand, '%')) {
		skip_chars(&operand, 1);
		return x86_register(&operand, name) && (size_t)snprintf(ret_text, size, "%%%s", name) < size;
	}
	if (part_begins(&operand, '-') || part_begins(&operand, '+'))
		skip_chars(&operand, 1);
	digits = take_digits(&operand);
	if (operand.len < 4 || memcmp(operand.text, "(%", 2) != 0 || operand.text[operand.len - 1] != ')')
		return false;
	skip_chars(&operand, 2);
	operand.len--;
	return x86_register(&operand, name) &&
	       (size_t)snprintf(ret_text, size, "%c%.*s(%%%s)", sign, digits.len ? (int)digits.len : 1,
				digits.len ? digits.text : "0", name) < size;
}

/* "xN", "[sp]" or "[sp, NUMBER]" */
static bool aarch64_operand(struct part operand, char *ret_text, size_t size)
{
	struct part digits = { .text = "0", .len = 1 };

	if (part_begins(&operand, 'x')) {
		skip_chars(&operand, 1);
		digits = take_digits(&operand);
		return operand.len == 0 && in_range(&digits, 0, 30) &&
		       (size_t)snprintf(ret_text, size, "%%x%.*s", (int)digits.len, digits.text) < size;
	}
	if (operand.len < 4 || memcmp(operand.text, "[sp", 3) != 0)
		return false;
	skip_chars(&operand, 3);
	if (operand.len > 2 && memcmp(operand.text, ", ", 2) == 0) {
		skip_chars(&operand, 2);
		digits = take_digits(&operand);
	}
	return digits.len > 0 && part_is(&operand, "]") &&
	       (size_t)snprintf(ret_text, size, "+%.*s(%%sp)", (int)digits.len, digits.text) < size;
}

/* Return the kernel's type for SIZE in "SIZE@OPERAND", or NULL if it has none. A negative SIZE means a signed number. */
static const char *type_of(const struct part *size)
{
	static const struct {
		long size;
		const char *type;
	} types[] = { { -8, ":s64" }, { -4, ":s32" }, { -2, ":s16" }, { -1, ":s8" },
		      { 1, ":u8" },   { 2, ":u16" },  { 4, ":u32" },  { 8, ":u64" } };
	long number = strtol(size->text, NULL, 0);

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (types[i].size == number)
			return types[i].type;
	return NULL;
}

static void print_argument(FILE *out, uint16_t machine, unsigned number, struct part argument)
{
	const char *at = memchr(argument.text, '@', argument.len), *type = "";
	char text[64];
	bool known;

	if (at) {
		type = type_of(&argument);
		skip_chars(&argument, (size_t)(at + 1 - argument.text));
	}
	known = machine == EM_AARCH64 ? aarch64_operand(argument, text, sizeof(text))
				      : (machine == EM_X86_64 || machine == EM_386) && x86_operand(argument, text, sizeof(text));
	if (type && known)
		fprintf(out, " arg%u=%s%s", number, text, type);
}

void bid_sdt_arguments(FILE *out, uint16_t machine, const char *arguments)
{
	/* some compilers write a colon for no arguments */
	if (arguments[0] == ':')
		return;
	for (unsigned number = 1; *(arguments += strspn(arguments, " \t")); number++) {
		struct part argument = { .text = arguments, .len = strcspn(arguments, " \t") };

		/* "[sp, 8]" is one */
		if (argument.len > 4 && memcmp(arguments + argument.len - 4, "[sp,", 4) == 0 && arguments[argument.len] == ' ')
			argument.len += 1 + strcspn(argument.text + argument.len + 1, " \t");
		print_argument(out, machine, number, argument);
		arguments = argument.text + argument.len;
	}
}
