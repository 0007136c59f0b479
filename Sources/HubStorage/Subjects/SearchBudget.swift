import HubCore

/// The work of a search for one page in one transaction. A search reads rows whole, most of them for
/// nothing; others must not wait for it, and it must not fill memory.
struct SearchBudget {
  /// Maximum number of rows read.
  static let rows = 500

  private var rows = 0
  private var bytes = 0

  var isSpent: Bool { rows >= Self.rows || bytes >= PageSize.limit }

  mutating func take(bytes count: Int) {
    rows += 1
    bytes += count
  }
}
