import Foundation
import HubCore
import HubStorage
import NotificationHubs
import Glibc

struct NoSeal: SecretSealing {
  func seal(_ p: [UInt8], context: String) -> [UInt8] { p }
  func open(_ p: [UInt8], context: String) -> [UInt8] { p }
}
func cpu() -> Double {
  var u = rusage(); getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &u)
  return Double(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + Double(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6
}
func rss() -> Int {
  let s = try! String(contentsOfFile: "/proc/self/status", encoding: .utf8)
  return Int(s.split(separator: "\n").first { $0.hasPrefix("VmRSS") }!.split(separator: " ").dropLast().last!)! / 1024
}
func timed<T>(_ name: String, per n: Int = 1, _ body: () async throws -> T) async rethrows -> T {
  let c = cpu(), t = Date()
  let v = try await body()
  let e = Date().timeIntervalSince(t), k = cpu() - c
  print(String(format: "%@: %.3f s wall, %.3f s cpu; per unit %.2f us wall %.2f us cpu; %.0f/s; rss %d MB", name, e, k, e / Double(n) * 1e6, k / Double(n) * 1e6, Double(n) / e, rss()))
  return v
}
let hexDigits = Array("0123456789ABCDEF".utf8)
func hex(_ n: Int, _ salt: UInt64) -> String {
  var x = UInt64(n) &* 0x9e37_79b9_7f4a_7c15 ^ salt
  var out: [UInt8] = []
  for _ in 0..<4 {
    x ^= x >> 29; x = x &* 0xbf58_476d_1ce4_e5b9; x ^= x >> 32
    for s in stride(from: 60, through: 0, by: -4) { out.append(hexDigits[Int(truncatingIfNeeded: x >> UInt64(s)) & 15]) }
  }
  return String(decoding: out, as: UTF8.self)
}
let now = Date(timeIntervalSince1970: 1_893_456_000)
let template = PushTemplate(body: #"{"aps":{"alert":"$(message)"}}"#)
func device(_ n: Int) -> (Installation, [RegistrationDraft]) {
  let h = hex(n, 7)
  let p = h.prefix(32)
  let id = "\(p.prefix(8))-\(p.dropFirst(8).prefix(4))-\(p.dropFirst(12).prefix(4))-\(p.dropFirst(16).prefix(4))-\(p.dropFirst(20))".lowercased()
  let tags: [Tag] = [Tag(rawValue: "group\(n % 10)"), Tag(rawValue: "city\(n % 1000)"), n % 2 == 0 ? "even" : "odd"]
  let i = Installation(installationID: id, userID: n % 4 == 0 ? "user\(n)" : nil, platform: .apns, pushChannel: .handle(h), tags: tags, templates: ["main": template])
  var t: [Tag] = [Tag(rawValue: "$InstallationId:{\(id)}")]
  if let u = i.userID { t.append(Tag(rawValue: "$UserId:{\(u)}")) }
  t += tags
  return (i, [
    RegistrationDraft(kind: .native, platform: .apns, channel: i.pushChannel, tags: t),
    RegistrationDraft(kind: .template(template, name: "main"), platform: .apns, channel: i.pushChannel, tags: t + ["main"]),
  ])
}
@Sendable func load(_ store: SQLiteHubStore, hub: Hub.ID, from a: Int, to b: Int, callers: Int) async throws {
  try await withThrowingTaskGroup(of: Void.self) { g in
    for c in 0..<callers {
      g.addTask {
        for n in stride(from: a + c, to: b, by: callers) {
          let (i, r) = device(n)
          try await store.putInstallation(i, registrations: r, hub: hub, at: now)
        }
      }
    }
    try await g.waitForAll()
  }
}
let args = CommandLine.arguments
let path = args[1], N = Int(args[2])!
let store = try await timed("open") { try await SQLiteHubStore.open(at: path, sealing: NoSeal()) }
var hub = try await store.hub(named: "bench")?.id
if hub == nil {
  hub = try await store.createHub(named: "bench", registrationTTL: nil, policies: [], at: now).id
  try await timed("bulk load 2048 callers", per: N) { try await load(store, hub: hub!, from: 0, to: N, callers: 2048) }
}
let h = hub!
let base = N + Int(Date().timeIntervalSince1970) % 1_000_000 * 20_000
try await timed("put new, 64 callers", per: 20000) { try await load(store, hub: h, from: base, to: base + 20000, callers: 64) }
try await timed("put unchanged, 64 callers", per: 20000) { try await load(store, hub: h, from: base, to: base + 20000, callers: 64) }
try await timed("put unchanged, spread, 64 callers", per: 20000) { try await load(store, hub: h, from: 1000, to: 21000, callers: 64) }
if args.count > 3 { try await store.close(); exit(0) }
func q(_ k: AudienceQuery.Kind, _ e: TagExpression?) -> AudienceQuery { AudienceQuery(hub: h, kind: k, expression: e, asOf: now) }
let expr: TagExpression = .and(.or(.tag("group1"), .tag("even")), .not(.tag("city7")))
for (name, e) in [("all", nil), ("expr", expr), ("city", TagExpression.tag("city7")), ("user", TagExpression.tag("$UserId:{user4000}"))] {
  for kind in [AudienceQuery.Kind.native(.apns), .template] {
    _ = try await timed("first page cold \(name) \(kind)") { try await store.targets(q(kind, e), after: 0, limit: 1000) }
    _ = try await timed("first page hot \(name) \(kind)", per: 100) { for _ in 0..<100 { _ = try await store.targets(q(kind, e), after: 0, limit: 1000) } }
    let n = try await timed("count hot \(name) \(kind)", per: 100) { var n = 0; for _ in 0..<100 { n = try await store.count(q(kind, e)) }; return n }
    print("  = \(n)")
    var m = 0
    try await timed("all pages \(name) \(kind)", per: n) {
      var after: RegistrationID? = 0
      while let a = after { let p = try await store.targets(q(kind, e), after: a, limit: 1000); m += p.targets.count; after = p.next }
    }
    precondition(m == n)
  }
}
_ = try await timed("directoryVersion", per: 10000) { for _ in 0..<10000 { _ = try await store.directoryVersion() } }
let (some, _) = device(1234)
_ = try await timed("installation get", per: 10000) { for _ in 0..<10000 { _ = try await store.installation(some.installationID, hub: h) } }
try await store.accept(NotificationRecord(id: NotificationID(rawValue: UUID().uuidString), hub: h, request: NotificationRequest(format: .template, body: []), state: .enqueued, enqueuedAt: now))
try await timed("close") { try await store.close() }
