// SPDX-License-Identifier: LGPL-2.1-or-later
#include "disk/record_batch.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "disk/layout.h"
#include "disk/pack/packs.h"
#include "disk/record_text.h"

/* One of them. */
struct collected {
	struct bid_request request; /* without detail; the id as it is filed */
	char *text; /* as it is in a pack; owned */
	size_t len;
	bool missing; /* to be written if there is none */
};

struct collection {
	struct collected *records; /* owned */
	size_t n, room;
};

struct bid_record_batch {
	struct bid_store *store; /* borrowed */
	pthread_mutex_t lock; /* protects what follows */
	struct collection collection;
};

static void release(struct collection *collection)
{
	for (size_t i = 0; i < collection->n; i++)
		free(collection->records[i].text);
	free(collection->records);
	*collection = (struct collection){ 0 };
}

int bid_record_batch_new(struct bid_store *store, struct bid_record_batch **ret_batch)
{
	struct bid_record_batch *batch = calloc(1, sizeof(*batch));

	if (!batch)
		return -ENOMEM;
	batch->store = store;
	pthread_mutex_init(&batch->lock, NULL);
	*ret_batch = batch;
	return 0;
}

void bid_record_batch_free(struct bid_record_batch *batch)
{
	if (!batch)
		return;
	release(&batch->collection);
	pthread_mutex_destroy(&batch->lock);
	free(batch);
}

int bid_record_batch_add(struct bid_record_batch *batch, const struct bid_record *record, bool missing)
{
	struct collection *collection = &batch->collection;
	struct collected collected = { .request = { .id = bid_layout_filed(&record->request.id), .kind = record->request.kind },
				       .missing = missing };
	int r = bid_record_print_packed(bid_record_json(record), &collected.text, &collected.len);

	if (r < 0)
		return r;
	pthread_mutex_lock(&batch->lock);
	r = bid_array_grow(collection->records, collection->n, collection->room);
	if (r == 0)
		collection->records[collection->n++] = collected;
	pthread_mutex_unlock(&batch->lock);
	if (r < 0)
		free(collected.text);
	return r;
}

size_t bid_record_batch_n(struct bid_record_batch *batch)
{
	size_t n;

	pthread_mutex_lock(&batch->lock);
	n = batch->collection.n;
	pthread_mutex_unlock(&batch->lock);
	return n;
}

/* Is there something under its name or key, so that it must be written over that? A file of its own goes before what packs have. */
static bool is_known(struct bid_store *store, const struct bid_record_fans *fans, const struct bid_request *request,
		     const struct bid_pack_key *key)
{
	return bid_record_has_own(store, fans, request) || bid_packs_find(store, key, NULL, NULL) != -ENOENT;
}

/* One alone takes a file either way. */
static int write_all(struct bid_store *store, const struct collection *collection)
{
	bid_auto_free struct bid_pack_item *items = calloc(collection->n, sizeof(*items));
	struct bid_record_fans fans;
	size_t n = 0;
	int result = 0, r;

	if (!items)
		return -ENOMEM;
	bid_record_fans(store, &fans);
	for (size_t i = 0; i < collection->n; i++) {
		struct collected *collected = &collection->records[i];
		struct bid_pack_key key = bid_pack_key(&collected->request.id, collected->request.kind);

		bool known = is_known(store, &fans, &collected->request, &key);

		/* an empty file is none */
		if (known && collected->missing && bid_record_exists(store, &collected->request))
			continue;
		if (collection->n == 1 || known) {
			r = bid_record_write_text(store, &collected->request, collected->text);
			result = result < 0 ? result : r;
		} else {
			items[n++] = (struct bid_pack_item){
				.key = key, .rank = collected->missing, .text = collected->text, .len = (uint32_t)collected->len
			};
		}
	}
	r = n > 0 ? bid_packs_add(store, items, n) : 0;
	return result < 0 ? result : r;
}

int bid_record_batch_write(struct bid_record_batch *batch)
{
	struct collection collection;
	int r;

	pthread_mutex_lock(&batch->lock);
	collection = batch->collection;
	batch->collection = (struct collection){ 0 };
	pthread_mutex_unlock(&batch->lock);
	r = collection.n > 0 ? write_all(batch->store, &collection) : 0;
	release(&collection);
	return r;
}
