// Package sqlfilter compiles and runs the filters and actions of subscription rules: the
// Service Bus dialect of SQL, and correlation filters.
//
// A rule's Filter decides whether a message goes to a subscription. Its Action changes the
// copy that the subscription gets. Both see a message as Fields, which the caller decodes
// from the payload; this package knows no AMQP and no entities.
//
// Grammar: see [ParseFilter] and [ParseAction]. An expression that uses anything else is
// refused when the rule is created, because a filter that silently ignored a part of its
// expression would deliver the wrong messages.
//
// Values follow SQL: a comparison with an absent property, or of two types, is unknown,
// and NOT unknown is unknown too. A message passes only if the result is true.
//
// Source: "Subscription rule SQL filter syntax" and "SQL action syntax" of the service's
// documentation. BETWEEN is an addition that the documentation does not have.
package sqlfilter
