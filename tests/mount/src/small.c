// SPDX-License-Identifier: LGPL-2.1-or-later
/* A program, a shared object or a module without sense. Another SEED is another build; the file is larger than BALLAST bytes. */
#ifndef BALLAST
#define BALLAST 1
#endif

__attribute__((used)) static const unsigned char ballast[BALLAST] = { SEED };

int main(void)
{
	return ballast[0] != SEED;
}
