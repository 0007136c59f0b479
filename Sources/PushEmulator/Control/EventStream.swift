import HTTPServer
import Wire

/// One open `text/event-stream` of the control API (docs/protocol/emulator.md, section 2.3).
///
/// It has no queue: when woken, it fetches new events from the history and writes them. A slow
/// reader therefore costs no memory, and one that stops reading is disconnected by the HTTP
/// server's stall limit.
struct EventStream: Sendable {
  /// The source of the events.
  enum Source: Sendable {
    case device(Int)
    case app(UInt32)
  }

  let core: EmulatorCore
  let source: Source
  /// Only events after this id.
  let after: Int
  /// Pause between two comment lines.
  let heartbeat: Duration

  private enum Wake: Sendable { case events, heartbeat }

  /// Maximum number of events fetched at once; a device's are fetched one by one, so that the one
  /// that was not delivered is known.
  private var limit: Int {
    if case .device = source { 1 } else { 256 }
  }

  /// Writes until the reader disconnects, is superseded, or the device is gone.
  func run(_ writer: HTTPBodyWriter) async throws {
    let (wakes, continuation) = AsyncStream.makeStream(
      of: Wake.self, bufferingPolicy: .bufferingNewest(1))
    let reader = open { continuation.yield(.events) }
    let beat = Task {
      while !Task.isCancelled {
        try await Task.sleep(for: heartbeat)
        continuation.yield(.heartbeat)
      }
    }
    defer {
      beat.cancel()
      continuation.finish()
      close(reader)
    }
    try await writer.write(ServerSentEvent.comment("open"))
    var cursor = after
    continuation.yield(.events)
    for await wake in wakes {
      let (count, ended) = try await drain(reader: reader, cursor: &cursor, to: writer)
      if ended { return }
      if count == 0, wake == .heartbeat { try await writer.write(ServerSentEvent.comment("")) }
    }
  }

  /// Writes everything that is new.
  private func drain(
    reader: Int, cursor: inout Int, to writer: HTTPBodyWriter
  ) async throws -> (count: Int, ended: Bool) {
    var count = 0
    while true {
      switch next(reader: reader, after: cursor) {
      case .gone: return (count, true)
      case .superseded:
        try await writer.write(ServerSentEvent(event: "superseded", data: "{}").bytes)
        return (count, true)
      case .events(let items, let last):
        guard last > cursor else { return (count, false) }
        var bytes: [UInt8] = []
        for item in items { item.write(to: &bytes) }
        try await write(bytes, items, to: writer)
        cursor = last
        count += items.count
      }
    }
  }

  private func write(
    _ bytes: [UInt8], _ items: [EventBatch.Item], to writer: HTTPBodyWriter
  ) async throws {
    do {
      try await writer.write(bytes)
    } catch HTTPWriteError.stalled {
      if case .device(let index) = source {
        let undelivered = items.compactMap(\.notification)
        core.withState { $0.streamStalled(index, undelivered: undelivered) }
      }
      throw HTTPWriteError.stalled
    }
  }

  private func open(_ wake: @escaping @Sendable () -> Void) -> Int {
    core.withState { state in
      switch source {
      case .device(let index): state.openReader(index, wake: wake)
      case .app(let app): state.openReader(app: app, wake: wake)
      }
    }
  }

  private func close(_ reader: Int) {
    core.withState { state in
      switch source {
      case .device(let index): state.closeReader(index, id: reader)
      case .app(let app): state.closeReader(app: app, id: reader)
      }
    }
  }

  private func next(reader: Int, after cursor: Int) -> EventBatch {
    core.withState { state in
      switch source {
      case .device(let index):
        state.nextEvents(of: index, reader: reader, after: cursor, limit: limit)
      case .app(let app):
        state.nextEvents(ofApp: app, reader: reader, after: cursor, limit: limit)
      }
    }
  }
}

extension EventBatch.Item {
  fileprivate var notification: Notification? {
    if case .notification(let delivery) = event.body { delivery.notification } else { nil }
  }

  /// Appends the event in wire form; its data is one line.
  fileprivate func write(to out: inout [UInt8]) {
    out += "event: \(event.name)\nid: \(id)\ndata: ".utf8
    out += event.json(device: device).jsonBytes
    out += "\n\n".utf8
  }
}

/// The result of a fetch by an event stream that was woken.
enum EventBatch: Sendable {
  /// Events with their ids, oldest first; none when the stream is up to date. `last` is the
  /// position at which to continue, beyond the last event even if some are no longer kept.
  case events([Item], last: Int)
  /// Another stream has replaced this one.
  case superseded
  /// The device or app is gone.
  case gone

  struct Item: Sendable {
    let id: Int
    let device: Int
    let event: DeviceEvent
  }
}

extension EmulatorState {
  /// The next events for a stream.
  mutating func nextEvents(of index: Int, reader: Int, after seq: Int, limit: Int) -> EventBatch {
    guard index < devices.count, let log = devices.log(of: index), let open = log.reader else {
      return .gone
    }
    guard open.id == reader else { return .superseded }
    devices.withLog(of: index) { $0.reader?.isAwake = false }
    let items = devices.events(of: index, after: seq, limit: limit).map {
      EventBatch.Item(id: $0.seq, device: index, event: $0)
    }
    return .events(items, last: items.last?.id ?? seq)
  }

  /// The next events for the stream of all devices of an app.
  mutating func nextEvents(ofApp app: UInt32, reader: Int, after id: Int, limit: Int) -> EventBatch
  {
    guard apps[app] != nil, let open = devices.feed(of: app).reader else { return .gone }
    guard open.id == reader else { return .superseded }
    devices.withFeed(of: app) { $0.reader?.isAwake = false }
    let entries = devices.feed(of: app).entries(after: id, limit: limit)
    let items = entries.compactMap { entry -> EventBatch.Item? in
      guard let event = devices.event(entry.entry) else { return nil }
      return EventBatch.Item(id: entry.id, device: Int(entry.entry.device), event: event)
    }
    return .events(items, last: entries.last?.id ?? id)
  }
}
