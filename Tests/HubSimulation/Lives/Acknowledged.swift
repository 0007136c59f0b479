/// The values that a reader may find, as the acknowledgements to its writers tell.
struct Acknowledged<Value: Hashable & Sendable>: Sendable {
  private struct Write: Sendable {
    let value: Value
    /// In seconds; `end` is the moment of its answer.
    let begin: Double
    var end: Double
    /// Whether it was answered that it is written.
    var isCertain: Bool
  }

  private var writes: [Write]

  /// The longest time that a request may still execute after its caller has given up, in seconds:
  /// it waits in a paused process, or for its database.
  static var straggling: Double { 200 }

  init(_ first: Value) { writes = [Write(value: first, begin: 0, end: 0, isCertain: true)] }

  /// A write has ended.
  /// - Parameter isCertain: `false` when nobody knows whether it was done, or will be.
  mutating func note(_ value: Value, since begin: Double, at end: Double, isCertain: Bool) {
    writes.append(
      Write(
        value: value, begin: begin, end: isCertain ? end : end + Self.straggling,
        isCertain: isCertain))
  }

  /// Notes that writes that were acknowledged since a moment may be lost, or be the last until now.
  mutating func doubt(since moment: Double, at now: Double) {
    for index in writes.indices where writes[index].end >= moment {
      writes[index].isCertain = false
      writes[index].end = max(writes[index].end, now)
    }
  }

  /// The latest beginning of a write that was certainly done.
  private var latest: Double { writes.reduce(0) { max($0, $1.isCertain ? $1.begin : 0) } }

  /// A write that ended before another, certain one began cannot be the last.
  func allows(_ value: Value) -> Bool {
    let latest = latest
    return writes.contains { $0.value == value && $0.end >= latest }
  }

  var possible: Set<Value> {
    let latest = latest
    return Set(writes.lazy.filter { $0.end >= latest }.map(\.value))
  }

  /// The only value that it can be; `nil` when there are several.
  var certain: Value? { possible.count == 1 ? possible.first : nil }
}
