// Package recordstoretest is the test suite of recordstore.Store, with baskets as aggregates.
// Tests of a store run UnitOfWork, Events and ConcurrentWriters, and use Baskets for tests of
// their own.
package recordstoretest
