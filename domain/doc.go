// Package domain is the root of the business model: contacts, the events they
// raise, and the faults a use case can end in.
//
// The model is pure. It reads no clock, no random source and no environment:
// times and ids are arguments. It does no I/O and does not log, and it imports
// nothing but the standard library and google/uuid. All rules about what a
// contact may hold live here and nowhere else.
//
// Sub-packages:
//
//   - contact: the Contact aggregate, its value objects and its events;
//   - event: what every domain event carries, and the recorder aggregates use;
//   - fault: the kinds of failure, shared by every layer.
package domain
