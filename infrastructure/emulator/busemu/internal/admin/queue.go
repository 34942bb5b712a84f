package admin

import (
	"bytes"
	"net/http"
	"strconv"
	"time"

	"feedbox/infrastructure/emulator/busemu/internal/broker"
	"feedbox/infrastructure/emulator/busemu/internal/isoduration"
)

// Queues of the admin API.
//
// PUT creates a queue (201; 409 if the name is taken). PUT with If-Match updates it (200) and
// detaches its links. GET of a queue that does not exist returns an empty feed. DELETE deletes
// it (404 if it does not exist). /$Resources/Queues lists all.
//
// It refuses updates of RequiresSession, RequiresDuplicateDetection and EnablePartitioning,
// which are fixed at creation.
//
// Source: azservicebus admin/admin_client_queue.go.

func (q *request) putQueue(d *xmlNode) {
	p, err := readQueue(d)
	if err != nil {
		q.failWith(err)
		return
	}
	p.Name = q.entity
	b, ctx := q.Broker, q.r.Context()
	if !q.update() {
		if p.Partitioned && !q.Premium { // the size applies to each partition
			p.MaxSizeMB *= b.Partitions()
		}
		info, err := b.CreateQueue(ctx, p)
		q.replyQueue(http.StatusCreated, info, err)
		return
	}
	old, err := b.Queue(q.entity)
	if err != nil {
		q.failWith(err)
		return
	}
	if err := unchanged(d, "Queue", old.RequiresSession, old.RequiresDuplicateDetection, old.Partitioned); err != nil {
		q.failWith(err)
		return
	}
	info, err := b.UpdateQueue(ctx, p)
	if err == nil {
		defer q.Updated(q.entity)
	}
	q.replyQueue(http.StatusOK, info, err)
}

// unchanged refuses an update of properties that are fixed at creation.
func unchanged(d *xmlNode, kind string, session, duplicates, partitioned bool) error {
	f := fieldReader{node: d}
	s, dup, part := session, duplicates, partitioned
	f.bool("RequiresSession", &s)
	f.bool("RequiresDuplicateDetection", &dup)
	f.bool("EnablePartitioning", &part)
	var text string
	switch {
	case f.err != nil:
		return f.err
	case s != session:
		text = "The value for the RequiresSession property of an existing " + kind + " cannot be changed."
	case dup != duplicates:
		text = "The value for the RequiresDuplicateDetection property of an existing " + kind + " cannot be changed."
	case part != partitioned:
		text = "Partitioning cannot be changed for " + kind + ". "
	default:
		return nil
	}
	return &broker.Error{Condition: broker.ArgumentError, Description: text}
}

func readQueue(d *xmlNode) (broker.Queue, error) {
	var p broker.Queue
	f := fieldReader{node: d}
	f.duration("LockDuration", &p.LockDuration)
	f.int("MaxSizeInMegabytes", &p.MaxSizeMB)
	f.int("MaxMessageSizeInKilobytes", &p.MaxMessageSizeKB)
	f.bool("RequiresDuplicateDetection", &p.RequiresDuplicateDetection)
	f.bool("RequiresSession", &p.RequiresSession)
	f.bool("EnablePartitioning", &p.Partitioned)
	f.duration("DefaultMessageTimeToLive", &p.DefaultTTL)
	f.duration("AutoDeleteOnIdle", &p.AutoDeleteOnIdle)
	f.duration("DuplicateDetectionHistoryTimeWindow", &p.DuplicateDetectionWindow)
	f.bool("DeadLetteringOnMessageExpiration", &p.DeadLetteringOnExpiration)
	f.int("MaxDeliveryCount", &p.MaxDeliveryCount)
	f.notBool("EnableBatchedOperations", &p.DisableBatchedOperations)
	f.bool("EnableExpress", &p.Express)
	f.status(&p.Status)
	f.entityName("ForwardTo", &p.ForwardTo)
	f.entityName("ForwardDeadLetteredMessagesTo", &p.ForwardDeadLetteredTo)
	f.string("UserMetadata", &p.UserMetadata)
	p.Opaque = opaque(d, "AuthorizationRules", "ForwardTo", "ForwardDeadLetteredMessagesTo")
	return p, f.err
}

func (q *request) getQueue() {
	if !q.mayRead() {
		return
	}
	info, err := q.Broker.Queue(q.entity)
	q.replyQueue(http.StatusOK, info, err)
}

func (q *request) replyQueue(status int, info broker.QueueInfo, err error) {
	if err != nil {
		q.failWith(err)
		return
	}
	q.replyEntry(status, queueEntry(info))
}

func (q *request) listQueues() {
	if !q.mayRead() {
		return
	}
	var entries []entry
	for _, info := range page(q, q.visible(q.Broker.Queues())) {
		entries = append(entries, queueEntry(info))
	}
	q.replyFeed("Queues", entries)
}

// visible removes the queue of the health check.
func (q *request) visible(all []broker.QueueInfo) []broker.QueueInfo {
	out := all[:0:0]
	for _, info := range all {
		if info.Name != q.Hidden {
			out = append(out, info)
		}
	}
	return out
}

func queueEntry(info broker.QueueInfo) entry {
	return entry{path: info.Name, title: info.Name, at: info.CreatedAt, updated: info.UpdatedAt, content: func(b *bytes.Buffer) { writeQueue(b, &info) }}
}

// writeQueue writes a description in the order of the service's schema.
func writeQueue(b *bytes.Buffer, info *broker.QueueInfo) {
	defer description(b, "QueueDescription")()
	element(b, "LockDuration", isoduration.Format(info.LockDuration))
	element(b, "MaxSizeInMegabytes", strconv.Itoa(info.MaxSizeMB))
	element(b, "RequiresDuplicateDetection", boolText(info.RequiresDuplicateDetection))
	element(b, "RequiresSession", boolText(info.RequiresSession))
	element(b, "DefaultMessageTimeToLive", isoduration.Format(info.DefaultTTL))
	element(b, "DeadLetteringOnMessageExpiration", boolText(info.DeadLetteringOnExpiration))
	element(b, "DuplicateDetectionHistoryTimeWindow", isoduration.Format(info.DuplicateDetectionWindow))
	element(b, "MaxDeliveryCount", strconv.Itoa(info.MaxDeliveryCount))
	element(b, "EnableBatchedOperations", boolText(!info.DisableBatchedOperations))
	element(b, "SizeInBytes", strconv.FormatInt(info.SizeBytes, 10))
	element(b, "MessageCount", strconv.FormatInt(info.Active+info.DeadLetter+info.Scheduled+info.Deferred, 10))
	element(b, "IsAnonymousAccessible", "false")
	b.WriteString(opaqueChild(info.Opaque, "AuthorizationRules"))
	element(b, "Status", string(info.Status))
	forwardTo(b, info.Opaque, "ForwardTo", info.ForwardTo)
	elementIf(b, "UserMetadata", info.UserMetadata)
	writeTimes(b, &info.Times)
	element(b, "SupportOrdering", "true")
	countDetails(b, &info.Counts)
	element(b, "AutoDeleteOnIdle", isoduration.Format(info.AutoDeleteOnIdle))
	element(b, "EnablePartitioning", boolText(info.Partitioned))
	element(b, "EntityAvailabilityStatus", "Available")
	forwardTo(b, info.Opaque, "ForwardDeadLetteredMessagesTo", info.ForwardDeadLetteredTo)
	element(b, "EnableExpress", boolText(info.Express))
	element(b, "MaxMessageSizeInKilobytes", strconv.Itoa(info.MaxMessageSizeKB))
}

func writeTimes(b *bytes.Buffer, t *broker.Times) {
	element(b, "CreatedAt", formatTime(t.CreatedAt))
	element(b, "UpdatedAt", formatTime(t.UpdatedAt))
	accessed := t.AccessedAt
	if accessed.Equal(t.CreatedAt) { // not used yet
		accessed = time.Time{}
	}
	element(b, "AccessedAt", formatTime(accessed))
}
