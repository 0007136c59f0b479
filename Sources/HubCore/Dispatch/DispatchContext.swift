import Foundation
import NotificationHubs
import Synchronization
import Wire

/// The facts that all pages of one notification share; made once, read from many tasks.
final class DispatchContext: Sendable {
  let id: NotificationID
  let hub: Hub.ID
  let lease: WorkLease
  /// The number under which this process has claimed it; see ``WorkStore/nodeID``.
  let node: Int64
  let request: NotificationRequest
  let seed: PushIDSeed
  let messages: MessageCache
  /// When the hub gives up (docs/protocol/push-services/README.md, section 3, rule 1), in the time
  /// of ``HubClock/steady``, as all moments that the dispatcher compares.
  let deadline: Date
  /// By the machine's clock.
  let releasedAt: Date
  let keeping: OutcomeKeeping
  let query: AudienceQuery
  /// Seconds by which ``HubClock/steady`` was ahead of the machine's clock when this was made.
  private let offset: Double
  private let aborted: Atomic<Bool>

  init(_ record: NotificationRecord, limits: DispatchLimits, at now: DispatchMoment) {
    id = record.id
    node = now.node
    hub = record.hub
    lease = record.lease
    request = record.request
    seed = PushIDSeed(record.id)
    messages = MessageCache(record.request)
    offset = now.steady.timeIntervalSince(now.wall)
    // A clock that was set back since then must not make the window longer.
    let elapsed = max(
      0,
      record.steadyRelease.map { now.steady.timeIntervalSince($0) }
        ?? now.wall.timeIntervalSince(record.releasedAt))
    deadline = now.steady.addingTimeInterval(max(0, limits.window - elapsed))
    releasedAt = record.releasedAt
    keeping = limits.keeping
    var query = record.audience
    query.part = record.lease.part
    self.query = query
    aborted = Atomic(record.abortedAt != nil)
  }

  /// Its sender has called it off.
  var isAborted: Bool { aborted.load(ordering: .relaxed) }

  /// Ends it for every page, also for those that tasks are sending.
  func abort() { aborted.store(true, ordering: .relaxed) }

  /// Whether nothing of the notification is sent any more.
  func isOver(at now: Date) -> Bool { isAborted || now >= deadline }

  /// The outcome of a target that is not sent to because the notification, or its message, is over.
  func unsent(_ reason: String) -> (outcome: NotificationOutcome, reason: String) {
    isAborted
      ? (.aborted, "the notification was aborted") : (.abandonedNotificationMessages, reason)
  }

  var isTemplate: Bool { request.format == .template }

  /// The lane of a native send.
  var lane: LaneKey? {
    guard case .native(let platform) = request.format else { return nil }
    return LaneKey(hub: hub, platform: platform)
  }

  /// Until when a message may be tried again; `nil` for one that asks for a single try.
  func lastTry(_ body: PushBody) -> Date? {
    if isAborted { return .distantPast }
    guard let expiry = body.expiry else { return deadline }
    guard expiry > 0 else { return nil }
    return min(deadline, moment(ofExpiry: expiry))
  }

  /// Whether a message's own time ran out while it waited here. One that was over when it came has
  /// its single try.
  func isOver(_ body: PushBody, at now: Date) -> Bool {
    guard let expiry = body.expiry, Double(expiry) > releasedAt.timeIntervalSince1970 else {
      return false
    }
    return moment(ofExpiry: expiry) <= now
  }

  /// From here on nothing of the notification is sent: its window is over, or the time of a native
  /// message, or it was aborted.
  var end: Date {
    if isAborted { return .distantPast }
    guard case .native(let platform) = request.format,
      let expiry = messages.native(platform).expiry,
      Double(expiry) > releasedAt.timeIntervalSince1970
    else { return deadline }
    return min(deadline, moment(ofExpiry: expiry))
  }

  private func moment(ofExpiry seconds: Int64) -> Date {
    Date(timeIntervalSince1970: Double(seconds)).addingTimeInterval(offset)
  }
}

extension NotificationRecord {
  /// Which registrations it goes to; nobody for a direct send.
  package var audience: AudienceQuery {
    let kind: AudienceQuery.Kind =
      switch request.format {
      case .template: .template
      case .native(let platform): .native(platform)
      }
    return AudienceQuery(
      hub: hub, kind: kind, expression: request.expression, asOf: releasedAt, notification: id)
  }
}

/// Limits of the dispatcher's memory and times. The numbers bound its memory: a target in flight costs
/// about 400 bytes with its handle, request and result.
package struct DispatchLimits: Sendable {
  /// Targets of one page, at most.
  package var pageSize = 1000
  /// Pages of one notification that are not recorded yet, and those of all notifications of a hub
  /// to one push service together; what a crash may repeat at most. Where connections carry more
  /// than ``laneTargets``, so many more.
  package var pagesPerNotification = 8
  /// Targets of all pages together. No hub gets more than half of it.
  package var targets = 64_000
  /// Targets under way to one push service of one hub, where its gateway does not say how many its
  /// connections carry.
  package var laneTargets = 4_000
  /// Targets that may wait in memory for a full lane before nothing more is read for it; four times
  /// as many where notifications come that have not been looked at.
  package var laneBacklog = 2_000
  /// Parts of notifications that one node works on at a time, where nodes share the work.
  package var claimedParts = 256
  /// The same for parts of which only retries are left; they count on top.
  package var waitingParts = 16_384
  /// Retries under way, of all notifications. No lane gets more than half of it.
  package var retryTargets = 8_000
  /// Seconds for which a full lane may go without an answer before the parts that wait for it in
  /// memory become retry rows.
  package var stall = 15.0
  /// Lifetime of a notification in the hub, in seconds (docs/protocol/push-services/README.md,
  /// section 3, rule 1).
  package var window = 1_800.0

  /// Which outcomes are kept device by device.
  package var keeping = OutcomeKeeping.failures

  /// The share of condemned handles above which none is removed; see `DeadHandleGuard`. 1 never
  /// stops.
  package var deadHandleShare = 0.3

  package init() {}
}

/// The messages of one notification: each is made once and shared by all pages, unless push
/// variables of a device go into it.
final class MessageCache: Sendable {
  /// The message of one template.
  enum Entry: Sendable {
    /// The same for all devices.
    case shared(PushBody)
    /// Differs with a device's push variables.
    case individual(CompiledTemplate)
    /// Does not compile any more; a store of an older build may hold such a one.
    case broken(String)
  }

  private struct Key: Hashable {
    let template: Int64
    let platform: PushPlatform
  }

  /// Beyond so many different templates they are made afresh page by page.
  private static let capacity = 512

  private let request: NotificationRequest
  private let properties: TemplateProperties
  private let entries = Mutex<[Key: Entry]>([:])

  init(_ request: NotificationRequest) {
    self.request = request
    // The body has been checked when the notification was accepted.
    let read = request.format == .template ? try? TemplateProperties(json: request.body) : nil
    properties = read ?? TemplateProperties([:])
  }

  /// The message of a native send.
  func native(_ platform: PushPlatform) -> PushBody {
    filled(PushBody(bytes: request.body), platform)
  }

  func entry(_ stored: StoredTemplate, platform: PushPlatform) -> Entry {
    let key = Key(template: stored.id, platform: platform)
    if let known = entries.withLock({ $0[key] }) { return known }
    let made = make(stored.template, platform)
    entries.withLock { entries in
      if entries.count >= Self.capacity { entries.removeAll() }
      entries[key] = made
    }
    return made
  }

  private func make(_ template: PushTemplate, _ platform: PushPlatform) -> Entry {
    do throws(TemplateError) {
      let compiled = try CompiledTemplate(template)
      if compiled.needsPushVariables(with: properties) { return .individual(compiled) }
      return .shared(filled(compiled.render(properties), platform))
    } catch {
      return .broken(error.description)
    }
  }

  func render(
    _ template: CompiledTemplate, pushVariables: [String: String], platform: PushPlatform
  ) -> PushBody {
    filled(template.render(properties, pushVariables: pushVariables), platform)
  }

  /// The request's headers take the place of those that the template does not set (docs/protocol/templates.md,
  /// section 7).
  private func filled(_ body: PushBody, _ platform: PushPlatform) -> PushBody {
    var body = body
    for (name, value) in request.headers where PassThroughHeaders.isRead(by: platform, name) {
      if body.headers[name] == nil { body.headers[name] = value }
    }
    if platform == .apns, let text = body.headers[SendHeaderName.apnsExpiration],
      let seconds = Int64(text), seconds >= 0
    {
      body.headers[SendHeaderName.apnsExpiration] = nil
      body.expiry = body.expiry ?? seconds
    }
    body.expiry = body.expiry ?? request.expiry
    return body
  }
}

/// Derives the id of each push of a notification from the device's handle, so that a repeat is
/// recognisable whatever happens to the registration: an installation that is deleted and
/// written again while a broadcast runs has another number, and the same handle.
///
/// The bytes of the notification's id are folded into two 64-bit states with different starts, one
/// finalizer step (splitmix64, a bijection with full avalanche) a byte; then platform, template and
/// handle, a step for each eight bytes. The same parts give the same id in every process, today and
/// after a restart; that two handles share one is as likely as for random numbers of 128 bits.
/// Changing this changes ids in flight: a repeat across the upgrade would not be recognised.
struct PushIDSeed: Sendable {
  private let high: UInt64
  private let low: UInt64

  init(_ notification: NotificationID) {
    var high: UInt64 = 0x6A09_E667_F3BC_C908  // fraction of √2
    var low: UInt64 = 0xBB67_AE85_84CA_A73B  // fraction of √3
    for byte in notification.rawValue.utf8 {
      high = Self.mix(high ^ UInt64(byte))
      low = Self.mix(low &+ UInt64(byte))
    }
    self.high = high
    self.low = low
  }

  /// - Parameters:
  ///   - handle: In its stored form; of a Web Push subscription only the endpoint counts.
  ///   - template: ``number(of:)`` of the template; 0 for a native push. A device with two templates
  ///     gets two pushes, which are no repeats of each other.
  func id(
    for handle: some Collection<UInt8>, platform: PushPlatform, template: UInt64 = 0
  ) -> PushID {
    let start = UInt64(platform.ordinal) &+ template
    var high = Self.mix(high ^ start)
    var low = Self.mix(low &+ start &* 0x9E37_79B9_7F4A_7C15)
    let end = handle.firstIndex(of: UInt8(ascii: "\n")) ?? handle.endIndex
    Self.fold(handle[..<end]) { word in
      high = Self.mix(high ^ word)
      low = Self.mix(low &+ word &* 0x9E37_79B9_7F4A_7C15)
    }
    return PushID(high: high, low: low)
  }

  /// A number for the contents of a template, the same in every process.
  static func number(of template: PushTemplate) -> UInt64 {
    var number: UInt64 = 0x3C6E_F372_FE94_F82B  // fraction of √5
    let headers = template.headers.sorted { $0.key < $1.key }.flatMap { [$0.key, $0.value] }
    for text in [template.body, template.expiry ?? ""] + headers {
      fold(text.utf8) { number = mix(number ^ $0) }
    }
    return number
  }

  /// Passes eight bytes at a time, and at last the rest with the length.
  private static func fold(_ bytes: some Collection<UInt8>, _ body: (UInt64) -> Void) {
    bytes.withBytes { fold(UnsafeRawBufferPointer($0), body) }
  }

  private static func fold(_ bytes: UnsafeRawBufferPointer, _ body: (UInt64) -> Void) {
    let rest = bytes.count & ~7
    for start in stride(from: 0, to: rest, by: 8) {
      body(UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: start, as: UInt64.self)))
    }
    let last = bytes[rest...].reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
    body(last ^ UInt64(bytes.count) << 56)
  }

  private static func mix(_ value: UInt64) -> UInt64 {
    var z = value &+ 0x9E37_79B9_7F4A_7C15
    z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
    z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
    return z ^ (z >> 31)
  }
}
