// SPDX-License-Identifier: LGPL-2.1-or-later
/* Programs that differ in the name of one function: dwz(1) moves their types and strings into a shared file. */
struct shared_item {
	int first_of_the_shared_item;
	long second_of_the_shared_item;
	struct shared_item *next_of_the_shared_item;
	union {
		float as_a_float;
		double as_a_double;
	} value_of_the_shared_item;
};

struct shared_box {
	struct shared_item items[4];
	unsigned long long number_of_items;
	int (*callback)(struct shared_item *item, int number);
};

struct shared_box the_box;

__attribute__((noinline)) int NAME(const struct shared_box *box, int number)
{
	return box->items[0].first_of_the_shared_item + number;
}

int main(int argc, char **argv)
{
	return NAME(&the_box, argc) == 0;
}
