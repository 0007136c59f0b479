/// A request independent of its source: the connection's thread and the handler's share nothing.
struct PendingRequest {
  let owner: any RequestOwner
  let request: HTTPRequest
}

/// The number of requests with a handler, and the queue of those that wait for one.
///
/// Connections take turns, with one request each: a request on a new connection waits for at most
/// one request of every other. Removed requests, whether served or abandoned, are not kept, so the
/// queue never has more than the connections have in progress.
struct RequestQueue {
  /// The requests of a connection in order of arrival.
  private struct Line {
    /// The ticket that distinguishes its place in the ring from those left by earlier lines of the
    /// connection.
    let ticket: UInt64
    var requests: [PendingRequest] = []
  }

  private(set) var running = 0
  /// The number of waiting requests.
  private(set) var count = 0
  private var lines: [UInt64: Line] = [:]
  /// The connections in the order of their turns, starting at `first`. Places of connections
  /// without a line are skipped.
  private var ring: [(connection: UInt64, ticket: UInt64)] = []
  private var first = 0
  private var lastTicket: UInt64 = 0

  /// The number of places in the ring, including past ones.
  var placeCount: Int { ring.count }

  /// - Returns: Whether the request starts now; otherwise ``next()`` returns it in its turn.
  mutating func begin(_ request: PendingRequest, limit: Int) -> Bool {
    guard running >= max(1, limit) else {
      running += 1
      return true
    }
    count += 1
    let connection = request.owner.connectionNumber
    if lines[connection] == nil {
      lastTicket += 1
      lines[connection] = Line(ticket: lastTicket)
      ring.append((connection, lastTicket))
    }
    lines[connection]?.requests.append(request)
    return false
  }

  /// Records that a request has been served.
  ///
  /// - Returns: The request that takes its place; its line moves to the end of the ring.
  mutating func next() -> PendingRequest? {
    while let place = takePlace() {
      guard var line = lines.removeValue(forKey: place.connection) else { continue }
      let request = line.requests.removeFirst()
      count -= 1
      if !line.requests.isEmpty {
        lines[place.connection] = line
        ring.append(place)
      }
      if !request.owner.isOver { return request }
    }
    running -= 1
    return nil
  }

  /// Removes a request whose reply is no longer wanted; `nil` if it is not queued.
  mutating func remove(_ owner: any RequestOwner) -> PendingRequest? {
    guard let line = lines[owner.connectionNumber],
      let index = line.requests.firstIndex(where: { $0.owner === owner })
    else { return nil }
    count -= 1
    let isLast = line.requests.count == 1
    if isLast {
      lines[owner.connectionNumber] = nil
      dropEmptyPlaces()
      return line.requests[index]
    }
    return lines[owner.connectionNumber]?.requests.remove(at: index)
  }

  /// Takes the next place of a connection that has a line.
  private mutating func takePlace() -> (connection: UInt64, ticket: UInt64)? {
    while first < ring.count {
      let place = ring[first]
      first += 1
      if first == ring.count {
        ring.removeAll(keepingCapacity: ring.capacity <= 64)
        first = 0
      } else if first >= 64, first * 2 >= ring.count {
        ring.removeFirst(first)
        first = 0
      }
      if lines[place.connection]?.ticket == place.ticket { return place }
    }
    return nil
  }

  private mutating func dropEmptyPlaces() {
    guard ring.count - first > 2 * lines.count + 64 else { return }
    ring.removeFirst(first)
    first = 0
    ring.removeAll { lines[$0.connection]?.ticket != $0.ticket }
  }
}
