// SPDX-License-Identifier: LGPL-2.1-or-later
/* Debug information shrunk by dwz(1) refers to a shared file. Its readers need both files. */
#include "broker/download.h"

void bid_download_prefetch(const struct bid_download *download, const struct bid_id *id)
{
	struct bid_request request = { .id = *id, .kind = BID_KIND_DEBUGINFO };
	struct bid_broker *broker = download->broker;
	struct bid_file file = BID_FILE_NONE;
	uint64_t handle;

	/* no prefetch for a prefetched file: a server could make an endless chain */
	if (!broker->config.prefetch || !download->wanted)
		return;
	if (bid_store_find(broker->store, &request, &file) == 0) {
		bid_file_release(&file);
		return;
	}
	if (bid_broker_handle(broker, NULL, NULL, &handle) == 0)
		bid_broker_fetch(broker, handle, &request);
}
