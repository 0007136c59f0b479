/// All virtual devices, their history and what waits for them. Every time is in ms since the Unix
/// epoch by the emulator's clock.
struct DeviceTable: Sendable {
  /// Bounds on what is kept of the past.
  struct Limits: Sendable {
    /// Events per device (docs/protocol/emulator.md, section 2.3).
    var eventsPerDevice = 1000
    /// Memory for the events of one device, in bytes and roughly; the last one stays whatever its
    /// size.
    var bytesPerDevice = 2 << 20
    /// Memory for the events of all devices together, in bytes and roughly; the oldest go first.
    var historyBytes = 64 << 20
    /// Memory for the messages that wait for all devices together; the oldest go first.
    var waitingBytes = 64 << 20
  }

  /// What was given up for want of room, since the start.
  struct Dropped: Sendable, Equatable {
    var events = 0
    var waiting = 0
  }

  let limits: Limits
  private(set) var devices: [Device] = []
  private(set) var logs: [DeviceLog] = []
  private var feeds: [UInt32: AppFeed] = [:]
  private var due = DueQueue()
  /// The events of all devices, oldest first, to find those that have to go.
  private var history = RingBuffer<AppFeed.Entry>()
  private var historyCost = 0
  private var historyCount = 0
  /// What waits, oldest first, and what no longer does.
  private var shelved = RingBuffer<(device: UInt32, message: MessageID)>()
  private var waitingCost = 0
  private var waitingCount = 0
  private(set) var dropped = Dropped()

  init(limits: Limits = Limits()) { self.limits = limits }

  var count: Int { devices.count }

  subscript(index: Int) -> Device {
    _read { yield devices[index] }
    _modify { yield &devices[index] }
  }

  mutating func reserve(_ more: Int) {
    if devices.capacity < devices.count + more {
      devices.reserveCapacity(max(devices.count + more, devices.count * 2))
    }
  }

  /// - Returns: The device's index.
  mutating func add(_ device: Device) -> Int {
    devices.append(device)
    return devices.count - 1
  }

  /// The device's log; `nil` as long as there was nothing to keep.
  func log(of index: Int) -> DeviceLog? {
    let place = devices[index].log
    return place < 0 ? nil : logs[Int(place)]
  }

  /// Changes the device's log, which is made if need be.
  mutating func withLog<Result>(
    of index: Int, _ body: (inout DeviceLog) throws -> Result
  ) rethrows -> Result {
    if devices[index].log < 0 {
      devices[index].log = Int32(logs.count)
      logs.append(DeviceLog())
    }
    let place = Int(devices[index].log)
    let (cost, count) = (logs[place].waitingCost, logs[place].waiting.count)
    defer {
      waitingCost += logs[place].waitingCost - cost
      waitingCount += logs[place].waiting.count - count
    }
    return try body(&logs[place])
  }

  func isOnline(_ index: Int) -> Bool {
    let device = devices[index]
    guard device.flags.contains(.followsStream) else { return device.flags.contains(.online) }
    let hasReader = device.log >= 0 && logs[Int(device.log)].reader != nil
    return hasReader || feeds[device.app]?.reader != nil
  }

  /// Forgets a device's history and what waits for it; its stream is woken and finds nothing.
  mutating func clearLog(of index: Int) {
    let place = Int(devices[index].log)
    guard place >= 0 else { return }
    historyCount -= logs[place].events.count
    historyCost -= logs[place].eventCost
    waitingCount -= logs[place].waiting.count
    waitingCost -= logs[place].waitingCost
    logs[place].reader?.signal()
    logs[place] = DeviceLog()
  }

  // MARK: Events

  /// Appends an event to the device's history and to its app's, and wakes the streams.
  mutating func record(_ body: DeviceEvent.Body, for index: Int) {
    let limits = limits
    var given = (count: 0, cost: 0)
    let (seq, cost) = withLog(of: index) { log in
      log.lastSeq += 1
      let event = DeviceEvent(seq: log.lastSeq, body: body)
      log.events.append(event)
      log.eventCost += event.cost
      while log.events.count > 1,
        log.events.count > limits.eventsPerDevice || log.eventCost > limits.bytesPerDevice,
        let old = log.events.popFirst()
      {
        log.eventCost -= old.cost
        given.count += 1
        given.cost += old.cost
      }
      log.reader?.signal()
      return (log.lastSeq, event.cost)
    }
    historyCost += cost - given.cost
    historyCount += 1 - given.count
    dropped.events += given.count
    let entry = AppFeed.Entry(device: UInt32(index), seq: UInt32(truncatingIfNeeded: seq))
    history.append(entry)
    feeds[devices[index].app, default: AppFeed()].append(entry)
    trimHistory()
  }

  private mutating func trimHistory() {
    while historyCost > limits.historyBytes, let oldest = history.popFirst() { forget(oldest) }
    // Entries whose event went with its device's own limit are dropped when they are the majority.
    guard history.count > 2 * historyCount + 4096 else { return }
    var live = RingBuffer<AppFeed.Entry>()
    for index in 0..<history.count where event(history[index]) != nil {
      live.append(history[index])
    }
    history = live
  }

  private mutating func forget(_ entry: AppFeed.Entry) {
    let place = Int(devices[Int(entry.device)].log)
    guard place >= 0, let first = logs[place].events.first,
      UInt32(truncatingIfNeeded: first.seq) == entry.seq
    else { return }
    logs[place].events.popFirst()
    logs[place].eventCost -= first.cost
    historyCost -= first.cost
    historyCount -= 1
    dropped.events += 1
  }

  /// The event at that place, while it is still kept.
  func event(_ entry: AppFeed.Entry) -> DeviceEvent? {
    guard let log = log(of: Int(entry.device)), let first = log.events.first else { return nil }
    let offset = Int(entry.seq) - first.seq
    return offset >= 0 && offset < log.events.count ? log.events[offset] : nil
  }

  /// The device's kept events after a number, oldest first.
  func events(of index: Int, after seq: Int, limit: Int) -> [DeviceEvent] {
    guard let log = log(of: index), let first = log.events.first else { return [] }
    let start = max(0, min(seq, log.lastSeq) - first.seq + 1)
    let end = min(log.events.count, start + limit)
    return start < end ? (start..<end).map { log.events[$0] } : []
  }

  /// Takes up the events of a device that was saved.
  mutating func restore(_ events: [DeviceEvent], lastSeq: Int, of index: Int) {
    withLog(of: index) { log in
      for event in events {
        log.events.append(event)
        log.eventCost += event.cost
      }
      log.lastSeq = lastSeq
    }
    for event in events {
      history.append(.init(device: UInt32(index), seq: UInt32(truncatingIfNeeded: event.seq)))
      historyCost += event.cost
      historyCount += 1
    }
    trimHistory()
  }

  // MARK: Messages that wait

  /// Adds a message to those that wait for a device. Where all that wait take too much, the oldest
  /// are discarded, whichever device they are for.
  /// - Parameter place: Among those of the device; `nil` behind them.
  mutating func shelve(_ item: DeviceLog.Waiting, for index: Int, at place: Int? = nil) {
    withLog(of: index) { $0.waiting.insert(item, at: place ?? $0.waiting.count) }
    shelved.append((UInt32(index), item.notification.id))
    while waitingCost > limits.waitingBytes, let oldest = shelved.popFirst() {
      let device = Int(oldest.device)
      guard let log = log(of: device),
        log.waiting.contains(where: { $0.notification.id == oldest.message })
      else { continue }
      removeWaiting([oldest.message], from: device)
      dropped.waiting += 1
      discard(oldest.message, for: device, why: .storeFull)
    }
    // What has been delivered or replaced meanwhile stands there still.
    guard shelved.count > 2 * waitingCount + 4096 else { return }
    var live = RingBuffer<(device: UInt32, message: MessageID)>()
    for index in 0..<shelved.count {
      let (device, message) = shelved[index]
      guard let log = log(of: Int(device)),
        log.waiting.contains(where: { $0.notification.id == message })
      else { continue }
      live.append((device, message))
    }
    shelved = live
  }

  // MARK: Streams

  func feed(of app: UInt32) -> AppFeed { feeds[app] ?? AppFeed() }

  mutating func withFeed<Result>(of app: UInt32, _ body: (inout AppFeed) -> Result) -> Result {
    body(&feeds[app, default: AppFeed()])
  }

  /// The newest id of each app's feed.
  var feedIDs: [UInt32: Int] { feeds.mapValues(\.lastID) }

  mutating func removeFeed(of app: UInt32) {
    feeds[app]?.reader?.signal()
    feeds[app] = nil
  }

  /// Wakes every stream, so that it sees that its device is gone.
  mutating func endReaders() {
    for index in logs.indices { logs[index].reader?.signal() }
  }

  // MARK: Due times

  /// Makes sure that the device is visited when its next waiting message is due.
  mutating func schedule(_ index: Int) {
    let next = withLog(of: index) { log -> Int64? in
      let next = log.nextDue
      guard next < log.scheduled else { return nil }
      log.scheduled = next
      return next
    }
    if let next { due.add(.init(due: next, device: index)) }
  }

  /// A device that has something due; the caller settles it and schedules it again.
  mutating func takeDue(at now: Int64) -> Int? {
    guard let entry = due.pop(dueAt: now) else { return nil }
    withLog(of: entry.device) { log in
      if log.scheduled == entry.due { log.scheduled = .max }
    }
    return entry.device
  }
}

/// When which device has something to do on its own: a binary heap, earliest first.
struct DueQueue: Sendable {
  struct Entry: Sendable {
    /// In ms since the Unix epoch.
    let due: Int64
    let device: Int
  }

  private var heap: [Entry] = []

  var earliest: Int64? { heap.first?.due }

  mutating func add(_ entry: Entry) {
    heap.append(entry)
    var child = heap.count - 1
    while child > 0 {
      let parent = (child - 1) / 2
      guard heap[child].due < heap[parent].due else { return }
      heap.swapAt(child, parent)
      child = parent
    }
  }

  /// Takes the earliest entry when it is due at `now`.
  mutating func pop(dueAt now: Int64) -> Entry? {
    guard let first = heap.first, first.due <= now else { return nil }
    let last = heap.removeLast()
    guard !heap.isEmpty else { return first }
    heap[0] = last
    var parent = 0
    while true {
      var smallest = parent
      for child in [2 * parent + 1, 2 * parent + 2]
      where child < heap.count && heap[child].due < heap[smallest].due {
        smallest = child
      }
      guard smallest != parent else { return first }
      heap.swapAt(parent, smallest)
      parent = smallest
    }
  }
}

/// A virtual device: one handle of one app at one push service.
///
/// A load test makes a hundred thousand of these, so the history stands elsewhere, and only for
/// devices that have one (`DeviceTable.logs`).
struct Device: Sendable {
  enum Registration: Sendable, Equatable {
    case registered
    /// Since then, in ms since the Unix epoch.
    case unregistered(at: Int64)
    case expired(at: Int64)
    /// The service never heard of the handle.
    case unknown
  }

  struct Flags: OptionSet, Sendable {
    let rawValue: UInt8
    static let online = Flags(rawValue: 1)
    static let followsStream = Flags(rawValue: 2)
    static let powerSaving = Flags(rawValue: 4)
    static let disabled = Flags(rawValue: 8)
    /// The app was deleted and the device with it; the place stays so that numbers do.
    static let deleted = Flags(rawValue: 16)
  }

  /// The app's number.
  let app: UInt32
  /// Less urgent messages wait; Web Push only (RFC 8030, section 5.3).
  var minUrgency = Urgency.veryLow
  /// Place of its log in `DeviceTable.logs`, or -1.
  var log: Int32 = -1
  var handle: DeviceHandle
  var flags: Flags
  var registration: Registration = .registered
  /// Until then (ms) a dead handle is still answered as a live one.
  var silentUntil: Int64 = 0
  /// The handle expires then (ms).
  var expiresAt: Int64 = .max

  /// What the push service knows of the handle at `now`, in ms.
  func registration(at now: Int64) -> Registration {
    if registration == .registered, now >= expiresAt { return .expired(at: expiresAt) }
    return registration
  }
}
