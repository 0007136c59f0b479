import HubCore
import NotificationHubs
import Synchronization

/// Assigns numbers to the templates in pages, by which this process caches its results for them. A
/// row contains the whole template, so that it is deleted completely with the row.
final class TemplateNumbers: Sendable {
  private struct State {
    var known: [[UInt8]: StoredTemplate] = [:]
    var last: Int64 = 0
  }

  private let state = Mutex(State())
  /// Maximum number of remembered templates; apps have few. A forgotten one gets another number.
  private static let limit = 10_000

  /// - Parameter bytes: See ``PushTemplate/stored``.
  func template(_ bytes: [UInt8]) throws -> StoredTemplate {
    if let known = state.withLock({ $0.known[bytes] }) { return known }
    let template = try PushTemplate(stored: bytes)
    return state.withLock { state in
      if let known = state.known[bytes] { return known }
      if state.known.count >= Self.limit { state.known = [:] }
      state.last += 1
      let new = StoredTemplate(id: state.last, template: template)
      state.known[bytes] = new
      return new
    }
  }
}
