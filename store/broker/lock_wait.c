// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Downloads of other processes. A download starts no attempt while another process holds the lock of its request
 * ("api/download_lock.h"). It polls the lock for half a minute, or half its readers' wait if shorter. Then it looks into the store,
 * and downloads by itself.
 */
#include <errno.h>

#include "api/download_lock.h"
#include "base/clock.h"
#include "base/log.h"
#include "broker/download.h"

#define POLL_MS 50
#define WAIT_MS 30000 /* limit, after which both processes download: the holder may be stopped */

/* Take the lock. Any error but -EBUSY starts the download without the lock. */
static int take_lock(struct bid_download *download)
{
	struct bid_broker *broker = download->broker;
	int r;

	download->lock_wait.key = bid_download_lock_key(&download->request, broker->servers_hash);
	r = bid_download_lock_take(broker->download_locks, download->lock_wait.key);
	download->lock_wait.holds = r == 0;
	return r;
}

/* Let a commit worker poll the lock later: less often after a longer wait, because the lock may be a request to an NFS server. */
static void poll_later(struct bid_download *download)
{
	struct bid_broker *broker = download->broker;
	int64_t now = bid_clock_ms();

	pthread_mutex_lock(&broker->lock);
	download->lock_wait.polls = true;
	/* the download may have ended meanwhile */
	if (download->machine.state == BID_DOWNLOAD_NEW)
		now += POLL_MS + (now - download->lock_wait.since_ms) / 8;
	bid_broker_arm(broker, &download->start_timer, now);
	pthread_mutex_unlock(&broker->lock);
}

void bid_download_start(struct bid_download *download)
{
	if (take_lock(download) != -EBUSY) {
		bid_download_run(download);
		return;
	}
	download->lock_wait.since_ms = bid_clock_ms();
	poll_later(download);
}

/* Returns the limit of the wait: a part of the readers' wait, because the download needs the rest. */
static int64_t limit_of(const struct bid_broker *broker)
{
	unsigned half = broker->config.wait_ms / 2;

	return half > 0 && half < WAIT_MS ? half : WAIT_MS;
}

static bool is_still_busy(struct bid_download *download)
{
	char name[BID_NAME_MAX];

	if (take_lock(download) != -EBUSY)
		return false;
	if (bid_clock_ms() - download->lock_wait.since_ms < limit_of(download->broker))
		return true;
	bid_info("another process did not fetch it in time, so this one does: '%s'", bid_request_name(&download->request, name));
	return false;
}

void bid_download_poll(struct bid_download *download)
{
	struct bid_broker *broker = download->broker;
	bool over;

	pthread_mutex_lock(&broker->lock);
	over = download->machine.state != BID_DOWNLOAD_NEW || broker->ending || bid_download_abandoned(download);
	pthread_mutex_unlock(&broker->lock);
	if (!over && is_still_busy(download)) {
		poll_later(download);
		return;
	}
	download->lock_wait.waited_ms = (unsigned)(bid_clock_ms() - download->lock_wait.since_ms);
	bid_download_run(download);
}
