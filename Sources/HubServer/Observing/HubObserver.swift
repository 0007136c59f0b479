package import HubCore

/// What the REST API tells an operator, and to whom.
package struct HubObserver: Sendable {
  /// Who may read `/metrics` beside those with a Manage token of the namespace.
  package enum Readers: Sendable {
    case nobodyElse
    /// Anyone who shows this as a bearer token.
    case bearer(String)
    case everybody
  }

  package var log: HubLog
  package var health: HubHealth
  package var metrics: MetricsPage
  package var readers: Readers

  package init(log: HubLog, health: HubHealth, metrics: MetricsPage, readers: Readers) {
    self.log = log
    self.health = health
    self.metrics = metrics
    self.readers = readers
  }
}
