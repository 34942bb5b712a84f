// Package doctor examines the topics of Service Bus for an operator.
package doctor
