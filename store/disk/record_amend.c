// SPDX-License-Identifier: LGPL-2.1-or-later
#include "disk/record_amend.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "disk/digest.h"
#include "disk/layout.h"
#include "disk/pack/pack_format.h"
#include "disk/pack/packs_list.h"
#include "disk/publish/temp.h"
#include "disk/record.h"
#include "disk/record_text.h"
#include "disk/store.h"

enum {
	MANY = 1 << 16, /* digests: 10 MB; all packs are written for them, which is little beside reading as many artifacts */
	FEW = 64, /* for digests of less than one of so many records in packs, these are not written anew */
};

struct digested {
	struct bid_pack_key key;
	struct bid_request request; /* without a detail */
	uint64_t was; /* XXH3-64 of the text that it goes into, and into no other */
	char digest[BID_DIGEST_MAX];
};

struct voided {
	struct bid_pack_key key;
	struct bid_request request;
};

struct bid_record_amends {
	struct bid_store *store; /* borrowed */
	bool whole; /* packs may be written */
	int lost; /* why a digest was not recorded, the first time */
	struct digested *digests; /* owned, as is the other */
	size_t n_digests, digests_room;
	struct voided *voids;
	size_t n_voids, voids_room;
};

int bid_record_amends_new(struct bid_store *store, bool whole, struct bid_record_amends **ret_amends)
{
	struct bid_record_amends *amends = calloc(1, sizeof(*amends));

	if (!amends)
		return -ENOMEM;
	amends->store = store;
	amends->whole = whole;
	*ret_amends = amends;
	return 0;
}

void bid_record_amends_free(struct bid_record_amends *amends)
{
	if (!amends)
		return;
	free(amends->digests);
	free(amends->voids);
	free(amends);
}

static struct bid_pack_key key_of(const struct bid_request *request)
{
	struct bid_id filed = bid_layout_filed(&request->id);

	return bid_pack_key(&filed, request->kind);
}

/* What is gone needs no digest. */
static int note(struct bid_record_amends *amends, int r)
{
	if (r < 0 && r != -ENOENT && amends->lost == 0)
		amends->lost = r;
	return r;
}

int bid_record_amends_digest(struct bid_record_amends *amends, const struct bid_request *request, const char *digest)
{
	struct digested digested = { .key = key_of(request), .request = *request };
	bid_auto_free char *text = NULL;
	struct stat st;
	size_t len;
	int r;

	if (!amends->whole || bid_record_stat(amends->store, request, &st) == 0 ||
	    bid_temp_is_shared(bid_store_root(amends->store)))
		return note(amends, bid_record_set(amends->store, request, "digest", digest));
	r = bid_packs_find(amends->store, &digested.key, &text, &len);
	if (r < 0)
		return r;
	digested.was = XXH3_64bits(text, len);
	memcpy(digested.digest, digest, strlen(digest) + 1);
	if (bid_array_grow(amends->digests, amends->n_digests, amends->digests_room) < 0)
		return note(amends, -ENOMEM);
	amends->digests[amends->n_digests++] = digested;
	return amends->n_digests < MANY ? 0 : bid_record_amends_write(amends);
}

int bid_record_amends_void(struct bid_record_amends *amends, const struct bid_request *request)
{
	if (!amends->whole)
		return 0;
	if (bid_array_grow(amends->voids, amends->n_voids, amends->voids_room) < 0)
		return -ENOMEM;
	amends->voids[amends->n_voids++] = (struct voided){ key_of(request), *request };
	return 0;
}

/* Of both, which have a key at their beginning. */
static int by_key(const void *a, const void *b)
{
	return bid_pack_compare(a, b);
}

static void set_digest(char *text, size_t *len, const char *digest)
{
	json_t *json = json_loadb(text, *len, 0, NULL);
	bid_auto_free char *amended = NULL;
	size_t amended_len;

	if (!json_is_object(json)) {
		json_decref(json);
		return;
	}
	bid_record_set_string(json, "digest", digest);
	if (bid_record_print_packed(json, &amended, &amended_len) < 0)
		return;
	memcpy(text, amended, amended_len);
	*len = amended_len;
}

static bool amend(void *user, const struct bid_pack_key *key, char *text, size_t *len)
{
	const struct bid_record_amends *amends = user;
	const struct voided *voided = NULL;
	const struct digested *digested = NULL;

	if (amends->n_voids > 0)
		voided = bsearch(key, amends->voids, amends->n_voids, sizeof(*amends->voids), by_key);
	if (amends->n_digests > 0)
		digested = bsearch(key, amends->digests, amends->n_digests, sizeof(*amends->digests), by_key);
	if (voided && bid_record_is_void(amends->store, &voided->request))
		return false;
	if (digested && digested->was == XXH3_64bits(text, *len))
		set_digest(text, len, digested->digest);
	return true;
}

/* Is one of the voided ones in a pack? */
static bool is_any_packed(const struct bid_record_amends *amends)
{
	for (size_t i = 0; i < amends->n_voids; i++)
		if (bid_packs_find(amends->store, &amends->voids[i].key, NULL, NULL) != -ENOENT)
			return true;
	return false;
}

/* Packs are held. An empty file goes only if every pack there is can be read, and says nothing of it. */
static void unvoid(const struct bid_record_amends *amends)
{
	bid_auto_packs struct bid_packs_list *list = bid_packs_list(amends->store);

	for (size_t i = 0; list && list->whole && i < amends->n_voids; i++) {
		const struct voided *voided = &amends->voids[i];

		if (bid_packs_find(amends->store, &voided->key, NULL, NULL) == -ENOENT &&
		    bid_record_is_void(amends->store, &voided->request))
			bid_record_unvoid(amends->store, &voided->request);
	}
}

/* Are the digests so many that packs are written for them? */
static bool is_much(const struct bid_record_amends *amends)
{
	bid_auto_packs struct bid_packs_list *list = bid_packs_list(amends->store);
	uint64_t n = 0;

	for (size_t i = 0; list && i < list->n; i++)
		n += list->packs[i]->pack.n;
	return amends->n_digests > 0 && amends->n_digests >= n / FEW;
}

static int write_held(struct bid_record_amends *amends)
{
	const struct bid_pack_amender amender = { .amend = amend, .user = amends };
	bid_auto_fd int hold = -1;
	int r = bid_temp_is_shared(bid_store_root(amends->store)) ? -EOPNOTSUPP : 0;

	if (r == 0)
		r = bid_packs_hold(amends->store, BID_PACKS_WAIT_MS, &hold);
	if (r < 0)
		return r;
	if (amends->n_digests > 0)
		qsort(amends->digests, amends->n_digests, sizeof(*amends->digests), by_key);
	if (amends->n_voids > 0)
		qsort(amends->voids, amends->n_voids, sizeof(*amends->voids), by_key);
	if (is_much(amends) || is_any_packed(amends)) {
		r = bid_packs_rewrite(amends->store, &amender);
		amends->n_digests = r == 0 ? 0 : amends->n_digests;
	}
	if (r == 0)
		unvoid(amends);
	return r;
}

/* Give the record a file of its own, unless it has changed meanwhile. */
static int set_alone(struct bid_store *store, const struct digested *digested)
{
	bid_auto_free char *text = NULL;
	struct stat st;
	size_t len;

	if (bid_record_stat(store, &digested->request, &st) == 0 || bid_packs_find(store, &digested->key, &text, &len) < 0 ||
	    digested->was != XXH3_64bits(text, len))
		return 0;
	return bid_record_set(store, &digested->request, "digest", digested->digest);
}

int bid_record_amends_write(struct bid_record_amends *amends)
{
	int r = amends->n_voids > 0 || is_much(amends) ? write_held(amends) : 0;

	/* those for which no pack was written */
	for (size_t i = 0; i < amends->n_digests; i++) {
		int s = note(amends, set_alone(amends->store, &amends->digests[i]));

		r = r == 0 ? s : r;
	}
	amends->n_digests = amends->n_voids = 0;
	return r;
}

int bid_record_amends_lost(const struct bid_record_amends *amends)
{
	return amends->lost;
}
