package admin

import (
	"bytes"
	"net/http"
	"strconv"

	"feedbox/infrastructure/emulator/busemu/internal/broker"
	"feedbox/infrastructure/emulator/busemu/internal/isoduration"
)

// Topics of the admin API. PUT, GET, DELETE and /$Resources/Topics behave as for queues.
//
// It refuses updates of RequiresDuplicateDetection and EnablePartitioning.
//
// Source: azservicebus admin/admin_client_topic.go.

func (q *request) putTopic(d *xmlNode) {
	p, err := readTopic(d)
	if err != nil {
		q.failWith(err)
		return
	}
	p.Name = q.entity
	b, ctx := q.Broker, q.r.Context()
	if !q.update() {
		if p.Partitioned && !q.Premium {
			p.MaxSizeMB *= b.Partitions()
		}
		info, err := b.CreateTopic(ctx, p)
		q.replyTopic(http.StatusCreated, info, err)
		return
	}
	old, err := b.Topic(q.entity)
	if err != nil {
		q.failWith(err)
		return
	}
	if err := unchanged(d, "Topic", false, old.RequiresDuplicateDetection, old.Partitioned); err != nil {
		q.failWith(err)
		return
	}
	info, err := b.UpdateTopic(ctx, p)
	if err == nil {
		defer q.Updated(q.entity)
	}
	q.replyTopic(http.StatusOK, info, err)
}

func readTopic(d *xmlNode) (broker.Topic, error) {
	var p broker.Topic
	f := fieldReader{node: d}
	f.duration("DefaultMessageTimeToLive", &p.DefaultTTL)
	f.int("MaxSizeInMegabytes", &p.MaxSizeMB)
	f.int("MaxMessageSizeInKilobytes", &p.MaxMessageSizeKB)
	f.bool("RequiresDuplicateDetection", &p.RequiresDuplicateDetection)
	f.duration("DuplicateDetectionHistoryTimeWindow", &p.DuplicateDetectionWindow)
	f.notBool("EnableBatchedOperations", &p.DisableBatchedOperations)
	f.status(&p.Status)
	f.string("UserMetadata", &p.UserMetadata)
	f.duration("AutoDeleteOnIdle", &p.AutoDeleteOnIdle)
	f.bool("EnablePartitioning", &p.Partitioned)
	p.DisableOrdering = p.Partitioned // the default; a topic in azservicebus' recordings, created without it, has true
	f.notBool("SupportOrdering", &p.DisableOrdering)
	f.bool("EnableExpress", &p.Express)
	p.Opaque = opaque(d, "AuthorizationRules")
	return p, f.err
}

func (q *request) getTopic() {
	if !q.mayRead() {
		return
	}
	info, err := q.Broker.Topic(q.entity)
	q.replyTopic(http.StatusOK, info, err)
}

func (q *request) replyTopic(status int, info broker.TopicInfo, err error) {
	if err != nil {
		q.failWith(err)
		return
	}
	q.replyEntry(status, topicEntry(info))
}

func (q *request) listTopics() {
	if !q.mayRead() {
		return
	}
	var entries []entry
	for _, info := range page(q, q.Broker.Topics()) {
		entries = append(entries, topicEntry(info))
	}
	q.replyFeed("Topics", entries)
}

func topicEntry(info broker.TopicInfo) entry {
	return entry{path: info.Name, title: info.Name, at: info.CreatedAt, updated: info.UpdatedAt, content: func(b *bytes.Buffer) { writeTopic(b, &info) }}
}

func writeTopic(b *bytes.Buffer, info *broker.TopicInfo) {
	defer description(b, "TopicDescription")()
	element(b, "DefaultMessageTimeToLive", isoduration.Format(info.DefaultTTL))
	element(b, "MaxSizeInMegabytes", strconv.Itoa(info.MaxSizeMB))
	element(b, "RequiresDuplicateDetection", boolText(info.RequiresDuplicateDetection))
	element(b, "DuplicateDetectionHistoryTimeWindow", isoduration.Format(info.DuplicateDetectionWindow))
	element(b, "EnableBatchedOperations", boolText(!info.DisableBatchedOperations))
	element(b, "SizeInBytes", strconv.FormatInt(info.SizeBytes, 10))
	element(b, "FilteringMessagesBeforePublishing", "false")
	element(b, "IsAnonymousAccessible", "false")
	b.WriteString(opaqueChild(info.Opaque, "AuthorizationRules"))
	element(b, "Status", string(info.Status))
	elementIf(b, "UserMetadata", info.UserMetadata)
	writeTimes(b, &info.Times)
	element(b, "SupportOrdering", boolText(!info.DisableOrdering))
	countDetails(b, &info.Counts)
	element(b, "SubscriptionCount", strconv.Itoa(info.SubscriptionCount))
	element(b, "AutoDeleteOnIdle", isoduration.Format(info.AutoDeleteOnIdle))
	element(b, "EnablePartitioning", boolText(info.Partitioned))
	element(b, "EntityAvailabilityStatus", "Available")
	element(b, "EnableSubscriptionPartitioning", "false")
	element(b, "EnableExpress", boolText(info.Express))
	element(b, "MaxMessageSizeInKilobytes", strconv.Itoa(info.MaxMessageSizeKB))
	element(b, "SqlFilterCount", strconv.Itoa(info.SQLFilters))
	element(b, "CorrelationFilterCount", strconv.Itoa(info.CorrelationFilters))
}
