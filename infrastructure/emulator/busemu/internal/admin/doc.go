// Package admin serves the admin API of the Service Bus emulator: ATOM entries over HTTP,
// by which the SDKs' administration clients create, read, list, update and delete queues,
// topics, subscriptions and rules.
//
//	request ─▶ Handler.ServeHTTP ─▶ queue, topic, subscription, rule ─▶ broker
//	           token, throttling      fields: XML to properties
//	           path to resource       atom: entries and feeds back
//
// It supports GET, PUT, PUT with If-Match (update) and DELETE of one entity, GET of a
// list with $skip and $top, and GET /$namespaceinfo. XML that the broker does not
// interpret (authorization rules, filters of an unknown type) is stored as it came and
// returned unchanged.
//
// It refuses other methods (405), bodies over 1 MB, and JSON. It ignores api-version.
//
// Source: azservicebus internal/atom and admin (requests and entries), the service's
// documentation, and published captures.
package admin
