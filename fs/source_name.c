// SPDX-License-Identifier: LGPL-2.1-or-later
#include "source_name.h"

#include <stddef.h>
#include <string.h>

/*
 * Suffixes that gcc(1), "Options Controlling the Kind of Output", and other compilers go by, and those of files that such files
 * include. No suffix that directories are called by, as "d" of D, or that may be a number, belongs here: a directory that is taken
 * for a file cannot be entered before something below it is kept, while a file that is taken for a directory can be read.
 */
static const char *const suffixes[] = {
	"C",   "H",   "S",   "ada", "adb",  "ads",   "asm", "c",   "c++", "cc",	  "cp",	 "cpp", "cppm", "cu",  "cuh", "cxx",
	"def", "f",   "f03", "f08", "f77",  "f90",   "f95", "for", "go",  "h",	  "h++", "hh",	"hpp",	"hs",  "hxx", "i",
	"ii",  "inc", "inl", "ipp", "java", "jl",    "kt",  "l",   "ll",  "m",	  "ml",	 "mli", "mm",	"nim", "pas", "pxd",
	"pyx", "rl",  "rs",  "s",   "sx",   "swift", "tcc", "tpp", "v",	  "vala", "y",	 "yy",	"zig",
};

bool bid_source_has_name(const char *name)
{
	const char *dot = strrchr(name, '.');

	if (!dot || dot == name)
		return false;
	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++)
		if (strcmp(dot + 1, suffixes[i]) == 0)
			return true;
	return false;
}
