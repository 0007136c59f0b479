/// What is sealed under which master key, and the way from one key to the next while servers work.
///
/// At any moment one key is in force, and the store itself says which: who seals a value asks
/// in the same transaction. So after ``changeSealingKey(to:)`` nothing comes under the old key any
/// more.
package protocol SealStore: Sendable {
  /// The id of the key in force.
  func sealingKey() async throws -> String
  /// Puts another key in force, one that this process has.
  /// - Returns: The nodes that live and do not have it; when there are some, nothing has changed.
  func changeSealingKey(to key: String) async throws -> [String]
  /// Seals values again that are under another key than the one in force, a few in a transaction.
  /// - Returns: How many it has found; 0 when none is left.
  func resealSome(limit: Int) async throws -> Int
  /// Opens all that is sealed.
  func sealedValues() async throws -> SealedValues
}

/// All that a store has sealed.
package struct SealedValues: Hashable, Sendable {
  /// How many values a key opens, by its id.
  package var counts: [String: Int] = [:]
  /// What no key here opens, as `push_credential/7/apns`.
  package var unopened: [String] = []

  package init() {}
}
