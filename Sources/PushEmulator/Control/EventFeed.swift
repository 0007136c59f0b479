/// What an event stream finds when it is woken.
enum EventBatch: Sendable {
  /// Events with their ids, oldest first; none when the stream is up to date. `last` is where to go
  /// on, beyond the last event even if some are no longer kept.
  case events([Item], last: Int)
  /// Another stream took its place.
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
