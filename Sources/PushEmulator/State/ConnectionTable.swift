/// The open connections of all services, in slots, so that a request finds its own without a
/// search.
struct ConnectionTable: Sendable {
  private(set) var slots: [EmulatorConnection?] = []
  private var free: [Int] = []
  private var lastNumber = 0

  /// - Parameter now: In ms.
  /// - Returns: The slot, good until `close`.
  mutating func open(
    _ service: PushService, isHTTP2: Bool, now: Int64
  ) -> Int {
    lastNumber += 1
    let connection = EmulatorConnection(
      number: lastNumber, service: service, isHTTP2: isHTTP2, openedAt: now, lastActivity: now)
    if let slot = free.popLast() {
      slots[slot] = connection
      return slot
    }
    slots.append(connection)
    return slots.count - 1
  }

  mutating func close(_ slot: Int) {
    slots[slot] = nil
    free.append(slot)
  }

  subscript(slot: Int) -> EmulatorConnection? {
    // Yields instead of copying: a connection's state contains many references.
    _read { yield slots[slot] }
    _modify { yield &slots[slot] }
  }

  /// The number the next connection will get, for faults that match before it is open.
  var nextNumber: Int { lastNumber + 1 }
}

/// A client's connection to a service.
struct EmulatorConnection: Sendable {
  /// Counts from 1 over all services.
  let number: Int
  let service: PushService
  let isHTTP2: Bool
  /// In ms, as is `lastActivity`.
  let openedAt: Int64
  var lastActivity: Int64
  var requests = 0
  /// The highest stream that was processed.
  var highestStream: Int32 = 0
  /// After GOAWAY: streams above this are not processed.
  var lastStream: Int32?
  /// Whether it was already dismissed because it was idle.
  var isIdle = false
  /// The last identity of the client, for the list of connections.
  var identity: String?
}
