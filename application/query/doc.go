// Package query is how aggregates of any kind are read without a unit of work: one by its
// id, a page of them, the audit trail of one. Nothing here changes an aggregate. A use case
// turns the states into views.
package query
