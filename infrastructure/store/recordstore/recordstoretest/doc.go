// Package recordstoretest is what any recordstore.Store has to pass, with baskets as the aggregates: tests of
// a store run UnitOfWork, Events and ConcurrentWriters, and use Baskets for what is theirs alone.
package recordstoretest
