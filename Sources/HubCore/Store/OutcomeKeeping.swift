/// Which outcomes are kept device by device, so that somebody can ask for them later. The counts of
/// telemetry do not depend on it.
package enum OutcomeKeeping: String, CaseIterable, Hashable, Sendable {
  case none
  /// Every outcome but success; what is not there has succeeded.
  case failures
  case all
}

/// How long kept outcomes stay.
package struct OutcomeRetention: Hashable, Sendable {
  /// After a notification's last outcome, in seconds.
  package var lifetime: Double
  /// How many are kept of all notifications together; those of the oldest go first.
  package var limit: Int

  package init(lifetime: Double = 7 * 86_400, limit: Int = 1_000_000) {
    self.lifetime = lifetime
    self.limit = limit
  }
}
