/// The sealed values by master key, and the change from one key to the next while servers are
/// running.
///
/// At any moment one key is in force, and the store itself records which: sealing a value reads it
/// in the same transaction. So after ``changeSealingKey(to:)`` no value is sealed under the old key
/// any more.
package protocol SealStore: Sendable {
  /// The id of the key in force.
  func sealingKey() async throws -> String
  /// Puts another key in force, one that this process has.
  /// - Returns: The living nodes that do not have it; if there are any, nothing has changed.
  func changeSealingKey(to key: String) async throws -> [String]
  /// Reseals values that are under a key other than the one in force, a few in a transaction.
  /// - Returns: Number of values found; 0 when none is left.
  func resealSome(limit: Int) async throws -> Int
  /// Opens all sealed values.
  func sealedValues() async throws -> SealedValues
}

/// All sealed values of a store.
package struct SealedValues: Hashable, Sendable {
  /// Number of values that a key opens, by its id.
  package var counts: [String: Int] = [:]
  /// Values that no key here opens, such as `push_credential/7/apns`.
  package var unopened: [String] = []

  package init() {}
}
