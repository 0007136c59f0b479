package import Foundation

/// A notification on its way into the store, with all that must be kept in the same moment.
package struct Submission: Sendable {
  package var record: NotificationRecord
  /// The devices that a direct send names, in its order; the store numbers them from 1.
  package var targets: [DirectTarget]
  /// What makes a repeat of the same request recognisable; `nil` when the sender gave no key.
  package var idempotency: IdempotencyClaim?

  package init(
    record: NotificationRecord, targets: [DirectTarget] = [],
    idempotency: IdempotencyClaim? = nil
  ) {
    self.record = record
    self.targets = targets
    self.idempotency = idempotency
  }
}

/// One device that a direct send names.
package struct DirectTarget: Hashable, Sendable {
  /// In the form of ``TargetPage/handles``.
  package let handle: String
  /// An earlier target of the same send has the same handle: this one is `Skipped`.
  package let isDuplicate: Bool

  package init(handle: String, isDuplicate: Bool) {
    self.handle = handle
    self.isDuplicate = isDuplicate
  }
}

/// A sender's key for one send, and what the send consists of.
package struct IdempotencyClaim: Hashable, Sendable {
  package let key: String
  /// The same for equal requests, another for others.
  package let fingerprint: [UInt8]
  /// Until then a repeat is recognised.
  package let expiresAt: Date

  package init(key: String, fingerprint: [UInt8], expiresAt: Date) {
    self.key = key
    self.fingerprint = fingerprint
    self.expiresAt = expiresAt
  }
}

/// What came of a submission.
package enum Acceptance: Hashable, Sendable {
  /// It is kept; from here on it survives anything.
  case accepted
  /// The same request came before; nothing was written. The notification that it became then.
  case repeated(NotificationID)
  /// Another request came with this key before; nothing was written.
  case keyInUse
}
