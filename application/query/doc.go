// Package query reads aggregates of any kind without a unit of work: one by its id, a page of
// them, or the audit trail of one. It changes nothing. A use case turns the states into views.
package query
