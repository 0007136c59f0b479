/// All virtual devices, their history and their waiting messages. Every time is in ms since the
/// Unix epoch by the emulator's clock.
struct DeviceTable: Sendable {
  /// Limits on the history and on waiting messages.
  struct Limits: Sendable {
    /// Events per device (docs/protocol/emulator.md, section 2.3).
    var eventsPerDevice = 1000
    /// Approximate memory for the events of one device, in bytes; the last one is kept whatever its
    /// size.
    var bytesPerDevice = 2 << 20
    /// Approximate memory for the events of all devices together, in bytes; the oldest are dropped
    /// first.
    var historyBytes = 64 << 20
    /// Memory for the waiting messages of all devices together; the oldest are dropped first.
    var waitingBytes = 64 << 20
  }

  /// Number of entries dropped to free memory, since the start.
  struct Dropped: Sendable, Equatable {
    var events = 0
    var waiting = 0
  }

  let limits: Limits
  private(set) var devices: [Device] = []
  private(set) var logs: [DeviceLog] = []
  private var feeds: [UInt32: AppFeed] = [:]
  private var due = DueQueue()
  /// The events of all devices, oldest first, by which those to drop are found.
  private var history = RingBuffer<AppFeed.Entry>()
  private var historyCost = 0
  private var historyCount = 0
  /// Waiting messages, oldest first, including some that no longer wait.
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

  /// The device's log; `nil` until there is something to keep.
  func log(of index: Int) -> DeviceLog? {
    let place = devices[index].log
    return place < 0 ? nil : logs[Int(place)]
  }

  /// Changes the device's log, which is created if necessary.
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

  /// Forgets a device's history and waiting messages; its stream is woken and finds nothing.
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
    // Entries whose event was dropped by its device's own limit are removed when they are the
    // majority.
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

  /// The event of an entry, while it is still kept.
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

  /// Restores the events of a saved device.
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

  // MARK: Waiting messages

  /// Adds a waiting message for a device. If all waiting messages exceed the limit, the oldest are
  /// discarded, for whichever device.
  /// - Parameter place: The index among those of the device; `nil` for the end.
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
    // Messages that have been delivered or replaced meanwhile are still in it.
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

  /// Wakes every stream, which then sees that its device is gone.
  mutating func endReaders() {
    for index in logs.indices { logs[index].reader?.signal() }
  }

  // MARK: Due times

  /// Makes sure that the device is processed when its next waiting message is due.
  mutating func schedule(_ index: Int) {
    let next = withLog(of: index) { log -> Int64? in
      let next = log.nextDue
      guard next < log.scheduled else { return nil }
      log.scheduled = next
      return next
    }
    if let next { due.add(.init(due: next, device: index)) }
  }

  /// Removes and returns a device with something due; the caller settles it and schedules it again.
  mutating func takeDue(at now: Int64) -> Int? {
    guard let entry = due.pop(dueAt: now) else { return nil }
    withLog(of: entry.device) { log in
      if log.scheduled == entry.due { log.scheduled = .max }
    }
    return entry.device
  }
}

/// The due times of devices: a binary heap, earliest first.
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

  /// Removes and returns the earliest entry when it is due at `now`.
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
/// A load test makes a hundred thousand of these, so the history is stored separately, and only for
/// devices that have one (`DeviceTable.logs`).
struct Device: Sendable {
  enum Registration: Sendable, Equatable {
    case registered
    /// Since that time, in ms since the Unix epoch.
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
    /// The app was deleted together with the device; the entry remains so that indexes stay valid.
    static let deleted = Flags(rawValue: 16)
  }

  /// The app's number.
  let app: UInt32
  /// Messages of a lower urgency are held; Web Push only (RFC 8030, section 5.3).
  var minUrgency = Urgency.veryLow
  /// The index of its log in `DeviceTable.logs`, or -1.
  var log: Int32 = -1
  var handle: DeviceHandle
  var flags: Flags
  var registration: Registration = .registered
  /// The time in ms until which a dead handle is still treated as a live one.
  var silentUntil: Int64 = 0
  /// The time in ms when the handle expires.
  var expiresAt: Int64 = .max

  /// The registration of the handle at `now`, in ms, as the push service knows it.
  func registration(at now: Int64) -> Registration {
    if registration == .registered, now >= expiresAt { return .expired(at: expiresAt) }
    return registration
  }
}
