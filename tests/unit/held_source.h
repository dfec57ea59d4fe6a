/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A source with a thread of its own that can be held at any point. */
#ifndef BID_TEST_HELD_SOURCE_H
#define BID_TEST_HELD_SOURCE_H

#include "broker_scene.h"

/* Where a held_source stops until it is let go. */
enum hold {
	HOLD_NOWHERE,
	HOLD_START,			/* inside start() */
	HOLD_HEAD,			/* before the body */
	HOLD_MIDDLE,			/* after the first half of the body */
	HOLD_END,			/* after all of it, before it says so */
};

struct held_transfer;

/* A source with a thread of its own: it delivers one transfer after the other. */
struct held_source {
	struct bid_source source;
	pthread_t thread;
	pthread_mutex_t lock;		/* guards everything below */
	pthread_cond_t changed;
	struct held_source *next;	/* in the scene */
	struct held_transfer *transfers;
	bool stop;
	unsigned last;

	/* to be set by the test */
	enum hold hold;
	unsigned hold_from;		/* transfers with lower numbers, from 1 on, are not held */
	bool deaf;			/* cancel() does not wake it */
	int start_error;
	enum bid_outcome outcome;	/* what it says if it has no body */
	const char *text;
	const void *body;
	size_t body_len;
	size_t first_len;		/* what its first half is, if not 0 */
	size_t first_step;		/* and how much more of it each further transfer has */
	bool breaks_off;		/* with half of the body delivered; after HOLD_MIDDLE it begins anew */
	bool no_head;			/* never calls head() */
	uint64_t announce;		/* the size it tells, if not 0 */
	void (*before_head)(void);	/* called by its thread */
	void (*in_start)(void);		/* called by the one who asks */

	/* to be read by the test */
	unsigned asked;
	unsigned cancels;
	unsigned right, wrong;		/* what the checks of its files came to */
	unsigned paused;		/* pieces of a body that are to come again once it is resumed */
	unsigned held;			/* transfers that have come to the holding point */
	size_t accepted;		/* bytes of the last body that the receiver took */
	enum bid_outcome ended;		/* how the last transfer did */
	unsigned done;
	bool freed_clean;		/* free() found no transfer */
};

/* Add one to the scene's broker. The struct is the scene's, and can be looked at when the broker has freed the source. */
struct held_source *scene_held(struct scene *scene, const char *name);

/* Let it deliver the file that carries @byte. */
void held_elf(struct held_source *held, uint8_t byte);

/* Change where it holds; HOLD_NOWHERE lets go. */
void held_hold(struct held_source *held, enum hold hold);

/* Hold those with lower numbers no more. */
void held_hold_from(struct held_source *held, unsigned number);

/* Wait until @count transfers in all have come to the holding point. */
void held_wait(struct held_source *held, unsigned count);

/* Wait until it was asked @count times in all. */
void held_wait_asked(struct held_source *held, unsigned count);

/* Wait until @count of them in all were told to end. */
void held_wait_cancels(struct held_source *held, unsigned count);

/* Wait until @count pieces in all were paused. */
void held_wait_paused(struct held_source *held, unsigned count);

/* Wait until @count transfers in all are done. */
void held_wait_done(struct held_source *held, unsigned count);

#endif
