import Testing

@testable import HTTP2

/// The pure values behind the server's limits.
@Suite("Meters and clocks of the server")
struct LimitTests {
  private static let second: UInt64 = 1_000_000_000

  @Test("a meter allows its number at once, and as many in each second from then on")
  func meter() {
    var meter = RateMeter(perSecond: 10)
    let start = 5 * Self.second
    func allowed(of count: Int, at moment: UInt64) -> Int {
      (0..<count).count { _ in meter.allows(at: moment) }
    }
    #expect(allowed(of: 15, at: start) == 10)
    #expect(allowed(of: 1, at: start + Self.second / 20) == 0)
    #expect(allowed(of: 2, at: start + Self.second / 10) == 1)
    #expect(allowed(of: 15, at: start + 100 * Self.second) == 10)
  }

  @Test("a meter that is asked without end keeps to its pace", arguments: [1, 7, 100, 1000])
  func pace(perSecond: Int) {
    var meter = RateMeter(perSecond: perSecond)
    let asked = 20 * perSecond
    let allowed = (0..<asked).count {
      meter.allows(at: Self.second + UInt64($0) * 10 * Self.second / UInt64(asked))
    }
    #expect((10 * perSecond...11 * perSecond).contains(allowed))
  }

  private static let configuration: HTTP2ServerConfiguration = {
    var configuration = HTTP2ServerConfiguration(
      host: nil, port: 0, certificatePEM: [], keyPEM: [])
    configuration.maxControlFramesPerSecond = 3
    configuration.maxResetsPerSecond = 2
    configuration.maxHeader = 100
    return configuration
  }()

  private func verdict(_ bytes: [UInt8], cut: Int) -> FrameWatch.Violation? {
    var watch = FrameWatch(Self.configuration)
    for start in stride(from: 0, to: bytes.count, by: cut) {
      let part = bytes[start..<min(bytes.count, start + cut)]
      let result = part.withUnsafeBytes { part in
        Result<Void, FrameWatch.Violation> { () throws(FrameWatch.Violation) in
          try watch.read(part, at: 1)
        }
      }
      if case .failure(let violation) = result { return violation }
    }
    return nil
  }

  @Test("frames are counted alike however their bytes arrive", arguments: [1, 2, 9, 10, 33, 4096])
  func cuts(cut: Int) {
    // The preface's SETTINGS is one of three.
    #expect(verdict(Frame.preface + bytes(.ping(1), .ping(2)), cut: cut) == nil)
    #expect(
      verdict(Frame.preface + bytes(.ping(1), .ping(2), .ping(3)), cut: cut) == .controlFrames)
    #expect(verdict(Frame.preface + bytes(.reset(1), .reset(3)), cut: cut) == nil)
    #expect(verdict(Frame.preface + bytes(.reset(1), .reset(3), .reset(5)), cut: cut) == .resets)
    let part = [UInt8](repeating: 0x82, count: 1000)
    #expect(
      verdict(
        Frame.preface + bytes(.headers(1, part, flags: 0), .continuation(1, part)), cut: cut)
        == .headerBlock)
    #expect(verdict(Frame.preface + Frame.priority(0).bytes, cut: cut) == .priorityOfConnection)
    let data = [UInt8](repeating: 9, count: 5000)
    #expect(
      verdict(
        Frame.preface + (0..<50).flatMap { _ in Frame.data(1, data, flags: 0).bytes }, cut: cut)
        == nil)
  }

  @Test("each limit of time counts from its own moment")
  func clocks() {
    var limits = Self.configuration
    limits.handshakeTimeout = .seconds(10)
    limits.requestTimeout = .seconds(30)
    limits.replyTimeout = .seconds(20)
    limits.idleTimeout = .seconds(100)
    let start = 1000 * Self.second
    func after(_ seconds: UInt64) -> UInt64 { start + seconds * Self.second }
    var clocks = ServerClocks(acceptedAt: start)
    var watch = FrameWatch(limits)
    func due(_ second: UInt64, _ streams: Int) -> ServerClocks.Due? {
      clocks.due(at: after(second), openStreams: streams, watch: watch, limits)
    }
    #expect(clocks.dueInHandshake(at: after(9), limits) == nil)
    #expect(clocks.dueInHandshake(at: after(10), limits) == .end)

    clocks.opened(at: after(1))
    #expect(due(10, 0) == .end)
    Frame.preface.withUnsafeBytes { try? watch.read($0, at: after(2)) }
    #expect(due(10, 0) == nil)
    #expect(due(101, 0) == .goAway)
    // With a request under way a silent client is asked first.
    #expect(due(101, 1) == .ping)
    #expect(due(102, 1) == nil)
    #expect(due(201, 1) == .end)
    clocks.received(at: after(150))
    #expect(due(201, 1) == nil)

    clocks.blocked(at: after(160), written: 5)
    clocks.blocked(at: after(170), written: 5)
    #expect(due(179, 1) == nil)
    #expect(due(180, 1) == .end)
    clocks.blocked(at: after(175), written: 6)
    #expect(due(190, 1) == nil)
    clocks.drained()
    #expect(due(199, 1) == nil)

    [UInt8]([0, 0, 8]).withUnsafeBytes { try? watch.read($0, at: after(200)) }
    #expect(due(230, 1) == .goAway)
  }
}
