/// A call of a node to the database, as the network between them sees it.
package struct SimulatedCall: Hashable, Sendable {
  /// Rules for a lost answer of a call that the database has done.
  package enum Unclear: Hashable, Sendable {
    /// The caller gets an error and does not know.
    case refuse
    /// It is done a second time.
    case again
    /// A mark or a row that was written with it tells that it was done: the answer is the same.
    case mark
  }

  /// The function of the store.
  package let name: String
  package let isWrite: Bool
  package let unclear: Unclear

  package init(name: String, isWrite: Bool, unclear: Unclear) {
    self.name = name
    self.isWrite = isWrite
    self.unclear = unclear
  }
}

/// The work of a call in the database. It keeps its answer, and returns whether the call belongs in
/// the time line.
package typealias Transaction = @Sendable () throws -> Bool

/// Carries calls of one node to the database and their answers back; the network of a life.
///
/// Not generic: looking up the types of each answer takes longer than many a call.
package protocol DatabaseLink: Sendable {
  /// - Parameter transaction: Done in one moment, once the call has arrived; a second time when
  ///   the answer is lost and the call may be done again.
  /// - Throws: What the transaction throws, and what the network does.
  func carry(_ call: SimulatedCall, _ transaction: @escaping Transaction) async throws
}

/// A link that takes no time and loses nothing.
package struct DirectLink: DatabaseLink {
  package init() {}

  package func carry(
    _ call: SimulatedCall, _ transaction: @escaping Transaction
  ) async throws { _ = try transaction() }
}
