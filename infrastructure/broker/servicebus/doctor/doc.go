// Package doctor checks the topics of Service Bus for an operator.
package doctor
