// SPDX-License-Identifier: LGPL-2.1-or-later
#include "held_server.h"

#include <errno.h>
#include <stdlib.h>

struct held_transfer {
	uint64_t number;
	const struct bid_receiver *receiver;
	void *user;
	bool cancelled, resumed;
	struct held_transfer *next;
};

static struct held_server *held_of(struct bid_server *server)
{
	return (struct held_server *)server;
}

/* Wait until the test continues. Returns whether the transfer goes on. Under the lock. */
static bool hold_here(struct held_server *held, struct held_transfer *transfer, enum hold_point here)
{
	if (transfer->number < held->hold_from)
		return !transfer->cancelled;
	if (held->hold == here) {
		held->held++;
		pthread_cond_broadcast(&held->changed);
	}
	while (held->hold == here && !held->stop && transfer->number >= held->hold_from && (!transfer->cancelled || held->deaf))
		pthread_cond_wait(&held->changed, &held->lock);
	return !transfer->cancelled;
}

static void tell_sent(const struct held_transfer *transfer)
{
	if (transfer->receiver->sent)
		transfer->receiver->sent(transfer->user);
}

/* Wait until the receiver lets it go on. Returns whether it does. */
static bool rest(struct held_server *held, struct held_transfer *transfer)
{
	bool on;

	pthread_mutex_lock(&held->lock);
	held->paused++;
	pthread_cond_broadcast(&held->changed);
	while (!transfer->resumed && !transfer->cancelled)
		pthread_cond_wait(&held->changed, &held->lock);
	transfer->resumed = false;
	on = !transfer->cancelled;
	pthread_mutex_unlock(&held->lock);
	return on;
}

static int send_part(struct held_server *held, struct held_transfer *transfer, size_t from, size_t to)
{
	int r = 0;

	while (r == 0 && from < to) {
		size_t len = to - from < 4096 ? to - from : 4096;

		do
			r = transfer->receiver->body(transfer->user, (const char *)held->body + from, len);
		while (r == -EAGAIN && rest(held, transfer));
		from += len;
		if (r == 0)
			held->accepted = from;
	}
	return r;
}

/* Without the lock except at the holding point: the test does not change its input meanwhile. */
static enum bid_outcome deliver(struct held_server *held, struct held_transfer *transfer)
{
	uint64_t size = held->announce ? held->announce : held->body_len;
	size_t half = held->first_len ? held->first_len : held->body_len / 2;
	bool on;
	int r = 0;

	tell_sent(transfer);
	pthread_mutex_lock(&held->lock);
	on = hold_here(held, transfer, HOLD_HEAD);
	pthread_mutex_unlock(&held->lock);
	if (!on)
		return BID_OUTCOME_CANCELLED;
	if (!held->body)
		return held->outcome;

	held->accepted = 0;
	if (held->before_header)
		held->before_header();
	if (!held->no_header)
		r = transfer->receiver->header(transfer->user, size);
	if (r == 0)
		r = send_part(held, transfer, 0, half);
	if (held->breaks_off && transfer->receiver->broke_off)
		transfer->receiver->broke_off(transfer->user);
	pthread_mutex_lock(&held->lock);
	on = hold_here(held, transfer, HOLD_MIDDLE);
	pthread_mutex_unlock(&held->lock);
	if (!on)
		return BID_OUTCOME_CANCELLED;
	if (r == 0 && held->breaks_off)
		r = transfer->receiver->header(transfer->user, size);
	if (r == 0)
		r = send_part(held, transfer, held->breaks_off ? 0 : half, held->body_len);
	pthread_mutex_lock(&held->lock);
	on = hold_here(held, transfer, HOLD_END);
	pthread_mutex_unlock(&held->lock);
	if (!on)
		return BID_OUTCOME_CANCELLED;
	return r == 0 ? BID_OUTCOME_FOUND : r == -EBADMSG ? BID_OUTCOME_REJECTED : BID_OUTCOME_FAILED;
}

static void *held_work(void *user)
{
	struct held_server *held = user;

	pthread_mutex_lock(&held->lock);
	while (!held->stop) {
		struct held_transfer *transfer = held->transfers;
		struct bid_server_report report = { .url = "held:", .file = "x" };

		if (!transfer) {
			pthread_cond_wait(&held->changed, &held->lock);
			continue;
		}
		pthread_mutex_unlock(&held->lock);
		report.outcome = deliver(held, transfer);
		report.text = held->text;
		pthread_mutex_lock(&held->lock);
		held->transfers = transfer->next;
		held->ended = report.outcome;
		pthread_mutex_unlock(&held->lock);

		transfer->receiver->done(transfer->user, &report);
		free(transfer);
		pthread_mutex_lock(&held->lock);
		held->done++;
		pthread_cond_broadcast(&held->changed);
	}
	pthread_mutex_unlock(&held->lock);
	return NULL;
}

static int held_request(struct bid_server *server, const struct bid_artifact *artifact, const struct bid_receiver *receiver,
			void *user)
{
	struct held_server *held = held_of(server);
	struct held_transfer *transfer = calloc(1, sizeof(*transfer)), **at = &held->transfers;
	int r;

	assert_non_null(transfer);
	pthread_mutex_lock(&held->lock);
	held->requests++;
	r = held->start_error;
	if (r == 0) {
		*transfer = (struct held_transfer){ .number = ++held->last, .receiver = receiver, .user = user };
		while (*at)
			at = &(*at)->next;
		*at = transfer;
	} else {
		free(transfer);
	}
	pthread_cond_broadcast(&held->changed);
	pthread_mutex_unlock(&held->lock);
	return r;
}

/* Remove the transfer of @user from the queue behind the first. Under the lock. */
static struct held_transfer *take_from_line(struct held_server *held, const void *user)
{
	struct held_transfer **at = &held->transfers, *transfer;

	while (*at && (*at == held->transfers || (*at)->user != user))
		at = &(*at)->next;
	transfer = *at;
	if (transfer)
		*at = transfer->next;
	return transfer;
}

struct leaver {
	struct held_server *held;
	struct held_transfer *transfer;
};

/* A thread that ends a transfer, because its server's thread may be held. */
static void *leave_line(void *user)
{
	const struct bid_server_report report = { .outcome = BID_OUTCOME_CANCELLED, .not_sent = true };
	struct leaver *leaver = user;
	struct held_server *held = leaver->held;

	leaver->transfer->receiver->done(leaver->transfer->user, &report);
	free(leaver->transfer);
	free(leaver);
	pthread_mutex_lock(&held->lock);
	held->done++;
	held->n_cancelled--;
	pthread_cond_broadcast(&held->changed);
	pthread_mutex_unlock(&held->lock);
	return NULL;
}

static void start_leaver(struct held_server *held, struct held_transfer *transfer)
{
	struct leaver *leaver = malloc(sizeof(*leaver));
	pthread_t thread;

	assert_non_null(leaver);
	*leaver = (struct leaver){ .held = held, .transfer = transfer };
	assert_int_equal(pthread_create(&thread, NULL, leave_line, leaver), 0);
	pthread_detach(thread);
}

static void held_cancel(struct bid_server *server, const void *user)
{
	struct held_server *held = held_of(server);
	struct held_transfer *in_line;

	pthread_mutex_lock(&held->lock);
	held->cancels++;
	if (held->transfers && held->transfers->user == user)
		held->transfers->cancelled = true;
	in_line = held->deaf ? NULL : take_from_line(held, user);
	held->n_cancelled += in_line != NULL;
	pthread_cond_broadcast(&held->changed);
	pthread_mutex_unlock(&held->lock);
	if (in_line)
		start_leaver(held, in_line);
}

static void held_resume(struct bid_server *server, const void *user)
{
	struct held_server *held = held_of(server);

	pthread_mutex_lock(&held->lock);
	if (held->transfers && held->transfers->user == user)
		held->transfers->resumed = true;
	pthread_cond_broadcast(&held->changed);
	pthread_mutex_unlock(&held->lock);
}

static void held_free(struct bid_server *server)
{
	struct held_server *held = held_of(server);

	pthread_mutex_lock(&held->lock);
	held->stop = true;
	held->freed_clean = !held->transfers;
	pthread_cond_broadcast(&held->changed);
	while (held->n_cancelled > 0)
		pthread_cond_wait(&held->changed, &held->lock);
	pthread_mutex_unlock(&held->lock);
	pthread_join(held->thread, NULL);
	/* a probe for a loop may be behind the transfer that the thread ended last */
	for (struct held_transfer *transfer; (transfer = held->transfers);) {
		static const struct bid_server_report report = { .outcome = BID_OUTCOME_CANCELLED, .not_sent = true };

		held->transfers = transfer->next;
		transfer->receiver->done(transfer->user, &report);
		free(transfer);
	}
	pthread_mutex_destroy(&held->lock);
	pthread_cond_destroy(&held->changed);
}

static void held_note_check(struct bid_server *server, bool right, const char *text)
{
	struct held_server *held = (struct held_server *)server;

	pthread_mutex_lock(&held->lock);
	held->right += right;
	held->wrong += !right;
	pthread_mutex_unlock(&held->lock);
}

static void held_health(struct bid_server *server, struct bid_server_health *ret_health)
{
	*ret_health = (struct bid_server_health){ 0 };
}

static const struct bid_server_ops held_ops = {
	.request = held_request,
	.cancel = held_cancel,
	.resume = held_resume,
	.note_check = held_note_check,
	.free = held_free,
	.health = held_health,
};

struct held_server *fixture_held(struct fixture *fixture, const char *name)
{
	struct held_server *held = calloc(1, sizeof(*held));

	assert_non_null(held);
	held->server = (struct bid_server){ .ops = &held_ops, .name = name };
	held->outcome = BID_OUTCOME_ABSENT;
	held->text = "as told";
	pthread_mutex_init(&held->lock, NULL);
	pthread_cond_init(&held->changed, NULL);
	held->next = fixture->held;
	fixture->held = held;
	assert_int_equal(pthread_create(&held->thread, NULL, held_work, held), 0);
	assert_int_equal(bid_broker_add_server(fixture->broker, &held->server), 0);
	return held;
}

void held_elf(struct held_server *held, uint8_t byte)
{
	held->body = elf_bytes(byte, &held->body_len);
}

void held_hold(struct held_server *held, enum hold_point hold)
{
	pthread_mutex_lock(&held->lock);
	held->hold = hold;
	held->deaf = false;
	pthread_cond_broadcast(&held->changed);
	pthread_mutex_unlock(&held->lock);
}

struct held_server *fixture_held_elf(struct fixture *fixture, uint8_t byte, enum hold_point hold)
{
	struct held_server *held = fixture_held(fixture, "held");

	held_elf(held, byte);
	held_hold(held, hold);
	return held;
}

void held_hold_from(struct held_server *held, unsigned number)
{
	pthread_mutex_lock(&held->lock);
	held->hold_from = number;
	pthread_cond_broadcast(&held->changed);
	pthread_mutex_unlock(&held->lock);
}

void held_wait(struct held_server *held, unsigned count)
{
	pthread_mutex_lock(&held->lock);
	while (held->held < count)
		wait_changed(&held->changed, &held->lock);
	pthread_mutex_unlock(&held->lock);
}

void held_wait_requests(struct held_server *held, unsigned count)
{
	pthread_mutex_lock(&held->lock);
	while (held->requests < count)
		wait_changed(&held->changed, &held->lock);
	pthread_mutex_unlock(&held->lock);
}

void held_wait_cancels(struct held_server *held, unsigned count)
{
	pthread_mutex_lock(&held->lock);
	while (held->cancels < count)
		wait_changed(&held->changed, &held->lock);
	pthread_mutex_unlock(&held->lock);
}

void held_wait_paused(struct held_server *held, unsigned count)
{
	pthread_mutex_lock(&held->lock);
	while (held->paused < count)
		wait_changed(&held->changed, &held->lock);
	pthread_mutex_unlock(&held->lock);
}

void held_wait_done(struct held_server *held, unsigned count)
{
	pthread_mutex_lock(&held->lock);
	while (held->done < count)
		wait_changed(&held->changed, &held->lock);
	pthread_mutex_unlock(&held->lock);
}
