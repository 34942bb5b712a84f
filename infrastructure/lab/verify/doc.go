// Package verify checks the results of a run of the whole system against the promises
// of the outbox. All tests of the whole system use it, and so does feedbox-dev verify.
//
// It does not depend on Cosmos DB, Service Bus or HTTP. A [Run] has the outcomes that
// clients saw, the stored documents and the messages of a consumer. [DecodeDocument]
// decodes stored documents for it. The package only reads its input, so it is safe for
// concurrent use.
package verify
