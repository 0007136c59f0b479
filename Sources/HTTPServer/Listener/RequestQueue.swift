/// A request taken out of what it came in by: the connection's thread and the handler's share
/// nothing.
struct PendingRequest {
  let owner: any RequestOwner
  let request: HTTPRequest
}

/// The number of requests that have a handler, and those that wait for one.
///
/// Connections take turns, a request each: who comes beside connections with many waits for one
/// request of each of them. What is taken out is not kept, neither what has been served nor what
/// its sender has left; so no more is here than the connections have under way.
struct RequestQueue {
  /// A connection's requests in the order in which they came.
  private struct Line {
    /// Tells its place in the ring from one that an earlier line of the connection left there.
    let ticket: UInt64
    var requests: [PendingRequest] = []
  }

  private(set) var running = 0
  /// Requests that wait.
  private(set) var count = 0
  private var lines: [UInt64: Line] = [:]
  /// The connections in the order of their turns, from `first` on. Of a connection without a line
  /// the place is skipped.
  private var ring: [(connection: UInt64, ticket: UInt64)] = []
  private var first = 0
  private var lastTicket: UInt64 = 0

  /// Places that are kept in the ring, those of the past included.
  var placeCount: Int { ring.count }

  /// - Returns: Whether the request starts now; otherwise ``next()`` gives it in its turn.
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

  /// A request has been served.
  ///
  /// - Returns: The one that takes its place; its line goes to the ring's end.
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

  /// Takes out a request that nobody waits for any more; `nil` where it does not wait.
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

  /// The place whose turn it is, of a connection that has a line.
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
