import Testing
import Wire

@testable import PushEmulator

/// The parts without input or output.
@Suite struct PureTests {
  @Test(
    "JSON is read as RFC 8259 says",
    arguments: [
      (#"{"a":[1,-2.5e3,"x\n\u00e9\ud83d\ude00",true,false,null]}"#, true), ("  {} ", true),
      ("", false), ("{", false), ("{]", false), (#"{"a":1,}"#, false), (#"{"a":01}"#, false),
      (#"{"a":1.}"#, false), (#"{"a":+1}"#, false), (#"{"a":"\x"}"#, false),
      (#"{"a":"\u12"}"#, false),
      ("{\"a\":\"\n\"}", false), ("{a:1}", false), ("{} {}", false), (#"{"a":tru}"#, false),
      (#"{"a":.5}"#, false), (#"{"a":-}"#, false), (#"{"a"}"#, false), (#"{"a""#, false),
    ])
  func json(text: String, isValid: Bool) {
    let bytes = Array(text.utf8)
    #expect(JSONScanner.isObject(bytes) == isValid)
    #expect(((try? JSONValue.read(bytes, uniqueNames: true)) != nil) == isValid)
  }

  @Test("JSON text survives reading and writing")
  func jsonRoundTrip() throws {
    let text = #"{"a":[1,-2,0.5,"q\"\\\u0001\n"],"b":{"c":null,"d":true},"e":"é😀"}"#
    let value = try JSONValue.read(Array(text.utf8), uniqueNames: true)
    #expect(String(decoding: value.jsonBytes, as: UTF8.self) == text)
    #expect(value["e"]?.text == "é😀")
    let escaped = try JSONValue.read(Array(#""\ud83d\ude00\u00e9\/\b""#.utf8), uniqueNames: true)
    #expect(escaped.text == "😀é/\u{8}")
  }

  @Test("bytes that are no UTF-8, and nesting without end, are no JSON")
  func hostileJSON() {
    let broken: [UInt8] = Array("{\"a\":\"".utf8) + [0xC3, 0x28] + Array("\"}".utf8)
    #expect(JSONScanner.isObject(broken) == false)
    let deep = Array((#"{"a":"# + String(repeating: "[", count: 100_000)).utf8)
    #expect(JSONScanner.isObject(deep) == false)
    #expect(throws: SyntaxFault.self) { try JSONValue.read(deep, uniqueNames: true) }
  }

  @Test(
    "a message id keeps the case of its letters",
    arguments: [
      "8f14e45f-ceea-467f-a0e6-1f2f3a4b5c6d", "8F14E45F-CEEA-467F-A0E6-1F2F3A4B5C6D",
      "8f14E45F-ceEA-467f-A0e6-1f2F3a4b5C6d",
    ])
  func messageIDs(text: String) {
    #expect(APNsMessageID(text)?.text == text)
  }

  @Test(
    "what is no UUID is no message id",
    arguments: [
      "", "8f14e45fceea467fa0e61f2f3a4b5c6d", "8f14e45f-ceea-467f-a0e6-1f2f3a4b5c6",
      "8f14e45f-ceea-467f-a0e6-1f2f3a4b5c6g", "8f14e45f-ceea-467f-a0e6-1f2f3a4b5c6dd",
      "8f14e45f+ceea+467f+a0e6+1f2f3a4b5c6d",
    ])
  func badMessageIDs(text: String) {
    #expect(APNsMessageID(text) == nil)
  }

  @Test("made ids are upper-case UUIDs of version 4, the same for the same seed")
  func generatedIDs() {
    var one = SeededGenerator(seed: 7)
    var two = SeededGenerator(seed: 7)
    let id = one.uuid().text
    #expect(id == two.uuid().text)
    #expect(id == id.uppercased())
    #expect(Array(id)[14] == "4")
    #expect("89AB".contains(Array(id)[19]))
  }

  @Test("a token is 64 hex digits of either case and prints in lower case")
  func deviceTokens() {
    let text = String(repeating: "0123456789abcdef", count: 4)
    #expect(APNsToken(text.uppercased().utf8)?.text == text)
    #expect(APNsToken(text.utf8) == APNsToken(text.uppercased().utf8))
    #expect(APNsToken(text.dropLast().utf8) == nil)
    #expect(APNsToken((text + "00").utf8) == nil)
    #expect(APNsToken((text.dropLast() + "g").utf8) == nil)
  }

  @Test("a ring buffer gives back in order what it was given")
  func ringBuffer() {
    var ring = RingBuffer<Int>()
    var next = 0
    for number in 0..<1000 {
      ring.append(number)
      if number % 3 == 0 {
        #expect(ring.popFirst() == next)
        next += 1
      }
    }
    #expect(ring.count == 1000 - next)
    #expect((0..<ring.count).map { ring[$0] } == Array(next..<1000))
    while ring.popFirst() != nil {}
    #expect(ring.isEmpty)
  }

  @Test("the due queue gives the earliest first, and nothing before its time")
  func dueQueue() {
    var queue = DueQueue()
    var generator = SeededGenerator(seed: 3)
    let times = (0..<500).map { _ in Int64(generator.next() % 1000) }
    for (device, due) in times.enumerated() { queue.add(.init(due: due, device: device)) }
    #expect(queue.pop(dueAt: -1) == nil)
    var found: [Int64] = []
    while let entry = queue.pop(dueAt: 499) {
      #expect(times[entry.device] == entry.due)
      found.append(entry.due)
    }
    #expect(found == times.filter { $0 <= 499 }.sorted())
    #expect(queue.earliest == times.filter { $0 > 499 }.min())
  }

  @Test("a token bucket allows its burst, then its rate")
  func tokenBucket() {
    var bucket = TokenBucket()
    func taken(_ count: Int, now: Int64) -> Int {
      var taken = 0
      for _ in 0..<count where bucket.take(rate: 2, burst: 3, now: now) { taken += 1 }
      return taken
    }
    #expect(taken(5, now: 0) == 3)
    #expect(taken(1, now: 400) == 0)
    #expect(taken(2, now: 500) == 1)
    #expect(taken(5, now: 60_000) == 3)
  }

  @Test("the clock moves on in both modes and never overflows")
  func clock() {
    var clock = EmulatorClock(manual: 100)
    clock.advance(by: 50)
    #expect(clock.now == 150)
    clock.advance(by: .max)
    #expect(clock.now == EmulatorClock.latest)
    clock.setReal()
    let before = clock.now
    clock.advance(by: 3_600_000)
    #expect(clock.now >= before + 3_600_000)
    clock.advance(by: .max)
    clock.advance(by: .max)
    #expect(clock.now > before)
  }

  @Test("the delays of a log-normal latency have the median and the 99th percentile asked for")
  func logNormal() {
    var generator = SeededGenerator(seed: 11)
    let latency = Latency.logNormal(p50: 20, p99: 200)
    let delays = (0..<20_000).map { _ in latency.milliseconds(&generator) }.sorted()
    #expect(abs(delays[10_000] - 20) < 1)
    #expect(abs(delays[19_800] - 200) < 30)
  }

  private func message(_ number: Int, bytes: Int) -> Notification {
    Notification(
      id: .word("m\(number)"), receivedAt: 0, headers: .fields(.fcm, []),
      payload: Array(repeating: 0x20, count: bytes), urgency: .normal, collapseKey: nil,
      storableUntil: .max, shelf: .wide, requestSeq: number)
  }

  @Test(
    "an inbox is bounded by bytes for each device, and keeps the last message whatever its size")
  func inboxBytes() {
    let one = DeviceEvent.place + message(0, bytes: 1000).cost
    var table = DeviceTable(limits: .init(eventsPerDevice: 1000, bytesPerDevice: 3 * one))
    let device = table.add(Device(app: 1, handle: .apns(.none), flags: .online))
    for number in 1...10 {
      table.deliver(message(number, bytes: 1000), to: device, from: .live, now: 0)
    }
    #expect(table.events(of: device, after: 0, limit: 99).map(\.seq) == [8, 9, 10])
    #expect(table.dropped.events == 7)
    table.deliver(message(11, bytes: 1_000_000), to: device, from: .live, now: 0)
    #expect(table.events(of: device, after: 0, limit: 99).map(\.seq) == [11])
  }

  @Test("what waits is bounded by bytes over all devices, the oldest goes first and is told")
  func waitingBytes() {
    let one = message(0, bytes: 1000).cost
    var table = DeviceTable(limits: .init(waitingBytes: 3 * one))
    for _ in 0..<2 { _ = table.add(Device(app: 1, handle: .apns(.none), flags: [])) }
    for number in 0..<6 {
      table.shelve(.init(notification: message(number, bytes: 1000)), for: number % 2)
    }
    func waiting(_ index: Int) -> [Int] {
      (table.log(of: index)?.waiting ?? []).map(\.notification.requestSeq)
    }
    #expect(waiting(0) == [4] && waiting(1) == [3, 5])
    #expect(table.dropped.waiting == 3)
    #expect(table.log(of: 0)?.counters.discarded == 2)
    // What was taken away makes room.
    table.removeWaiting([message(3, bytes: 0).id], from: 1)
    table.shelve(.init(notification: message(6, bytes: 1000)), for: 0)
    #expect(waiting(0) == [4, 6] && waiting(1) == [5])
    table.clearLog(of: 0)
    for number in 7..<9 {
      table.shelve(.init(notification: message(number, bytes: 1000)), for: 1)
    }
    #expect(waiting(1) == [5, 7, 8] && table.dropped.waiting == 3)
  }

  @Test("the journal is bounded by bytes")
  func journalBytes() {
    func entry(_ number: Int) -> Journal.Entry {
      Journal.Entry(
        seq: number, time: 0, service: .all[0], connection: 0, stream: 0,
        head: Array(repeating: 0x20, count: 10_000), credential: .none, handle: nil, bodyBytes: 0,
        status: 200, reason: nil, faultID: nil, storeAction: nil, recipients: nil, microseconds: 0)
    }
    var journal = Journal(capacity: 1000, bytes: 100_000)
    for number in 1...1000 { journal.append(entry(number)) }
    let kept = journal.entries(after: 0, limit: .max) { _ in true }.map(\.seq)
    #expect((5..<10).contains(kept.count) && kept.last == 1000)
    #expect(journal.dropped == 1000 - kept.count)
  }

  @Test("a credential's claims count in the journal's budget")
  func journalClaims() {
    let claims: JSONValue = ["scope": .array([.string(String(repeating: "x", count: 10_000))])]
    var journal = Journal(capacity: 1000, bytes: 100_000)
    for number in 1...1000 {
      journal.append(
        Journal.Entry(
          seq: number, time: 0, service: .all[0], connection: 0, stream: 0, head: [],
          credential: .accepted(keyID: "a", claims: claims), handle: nil, bodyBytes: 0,
          status: 200, reason: nil, faultID: nil, storeAction: nil, recipients: nil,
          microseconds: 0))
    }
    #expect((5..<10).contains(journal.count))
  }

  @Test("history over the budget goes oldest first, over all devices")
  func historyBudget() {
    var table = DeviceTable(limits: .init(eventsPerDevice: 10, historyBytes: DeviceEvent.place * 6))
    let handle = DeviceHandle.apns(.none)
    for _ in 0..<3 { _ = table.add(Device(app: 1, handle: handle, flags: .online)) }
    for round in 0..<4 {
      for index in 0..<3 {
        table.record(.state(round % 2 == 0 ? .online : .offline), for: index)
      }
    }
    #expect(
      (0..<3).map { table.events(of: $0, after: 0, limit: 99).map(\.seq) } == [
        [3, 4], [3, 4], [3, 4],
      ])
    let feed = table.feed(of: 1)
    #expect(feed.lastID == 12)
    #expect(feed.entries(after: 10, limit: 99).map(\.id) == [11, 12])
    // What a cleared device held counts no more.
    table.clearLog(of: 0)
    table.clearLog(of: 1)
    for _ in 0..<4 { table.record(.state(.online), for: 2) }
    #expect(table.events(of: 2, after: 0, limit: 99).map(\.seq) == [3, 4, 5, 6, 7, 8])
  }

  @Test("a device without history costs less than 200 bytes")
  func deviceSize() {
    #expect(MemoryLayout<Device>.stride + 2 * (MemoryLayout<APNsToken>.stride + 4) < 200)
  }
}
