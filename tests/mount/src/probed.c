// SPDX-License-Identifier: LGPL-2.1-or-later
/* Has a static probe, PROVIDER:done_SEED, as <sys/sdt.h> makes it: a note of three addresses and three strings (sdt.h). */
#define TEXT_OF(x) #x
#define TEXT(x)	   TEXT_OF(x)
#ifndef PROVIDER
#define PROVIDER probed
#endif

__asm__(".section .stapsdt.base, \"aG\", \"progbits\", .stapsdt.base, comdat\n"
	".weak _.stapsdt.base\n"
	".hidden _.stapsdt.base\n"
	"_.stapsdt.base: .space 1\n"
	".size _.stapsdt.base, 1\n"
	".previous\n");

__attribute__((noinline)) int hot(int n)
{
	__asm__ volatile("990: nop\n"
			 ".pushsection .note.stapsdt, \"\", \"note\"\n"
			 ".balign 4\n"
			 ".4byte 992f - 991f, 994f - 993f, 3\n"
			 "991: .asciz \"stapsdt\"\n"
			 "992: .balign 4\n"
			 "993: .8byte 990b\n"
			 ".8byte _.stapsdt.base\n"
			 ".8byte 0\n"
			 ".asciz \"" TEXT(PROVIDER) "\"\n"
						    ".asciz \"done_" TEXT(SEED) "\"\n"
										".asciz \"-4@%0\"\n"
										"994: .balign 4\n"
										".popsection\n"
			 :
			 : "r"(n));
	return n * 3 + SEED;
}

int main(int argc, char **argv)
{
	return hot(argc) == 0;
}
