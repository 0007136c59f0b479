import Foundation
import HubCore
import NotificationHubs

/// The clients: each line of a plan is one of them, which goes to a node, waits for its answer and
/// goes to another when there is none.
extension Life {
  /// A request that has not been answered.
  struct Request {
    let place: ProcessID
    let since: Double
    let drop: () -> Void
  }

  /// The answer to a client.
  enum Reply<Value: Sendable>: Sendable {
    case value(Value)
    case refused(HubFailure)
    /// The connection was closed without one, or the client has waited too long.
    case nothing
  }

  /// Time for which a client waits for an answer, in seconds.
  private static let clientPatience = 60.0

  /// Asks one process.
  func ask<Value: Sendable>(
    _ process: NodeProcess, _ body: @escaping @Sendable (HubService) async throws -> Value
  ) async -> Reply<Value> {
    let number = nextRequest
    nextRequest += 1
    return await withCheckedContinuation { continuation in
      let answer: @Sendable (Reply<Value>) -> Void = { [self] reply in
        guard requests.removeValue(forKey: number) != nil else { return }
        world.after(0.001, at: World.clients) { continuation.resume(returning: reply) }
      }
      requests[number] = Request(place: process.place, since: world.seconds) { answer(.nothing) }
      world.after(Self.clientPatience, at: World.clients) { answer(.nothing) }
      world.after(0.001, at: process.place) { [world] in
        guard process.isStarted, !process.isDead else { return answer(.nothing) }
        let service = process.hub.service
        Task {
          var reply = Reply<Value>.nothing
          do {
            reply = .value(try await body(service))
          } catch let failure as HubFailure {
            reply = .refused(failure)
          } catch {
            reply = .refused(HubFailure(status: 500, message: "\(error)"))
          }
          world.after(0.001, at: World.clients) { [reply] in answer(reply) }
        }
      }
    }
  }

  /// Those who wait for a process that is gone are told so.
  func hangUp(_ place: ProcessID) {
    for number in requests.keys.sorted() where requests[number]?.place == place {
      requests[number]?.drop()
    }
  }

  /// Asks one node after the other until there is an answer that is one.
  func insist<Value: Sendable>(
    _ line: Plan.Line, tries: Int = 6,
    _ body: @escaping @Sendable (HubService) async throws -> Value
  ) async -> Reply<Value> {
    var draw = RandomStream(plan.seed, UInt64(keyOf: "client"), UInt64(bitPattern: Int64(line.id)))
    // Once a try may have been done, a refusal of the next says nothing about it.
    var isUnclear = false
    let began = world.seconds
    for _ in 0..<tries {
      let able = processes.filter { !$0.isDead && $0.isStarted }
      // A balancer does not know of all that is wrong.
      let process = draw.pick(able.isEmpty || draw.oneIn(10) ? processes : able)
      let asked = world.seconds
      let reply = await ask(process, body)
      switch reply {
      case .value:
        // An answer may be under way when a failover loses what it tells of.
        return observations.wentBackAt.map { $0 >= began } ?? false ? .nothing : reply
      case .refused(let failure) where failure.status < 500 && failure.status != 429:
        return isUnclear ? .nothing : reply
      case .refused(let failure):
        isUnclear = true
        doubt(line)
        note("\(line.id) is answered \(failure.status) \(failure.message ?? "")", at: process.place)
        if failure.status >= 500 { watchFailure(of: line, failure, process, asked: asked) }
      case .nothing:
        isUnclear = true
        doubt(line)
        note("\(line.id) has no answer", at: process.place)
      }
      if world.isClosing { break }
      await world.wait(draw.between(0.5, 3))
    }
    return .nothing
  }

  /// A node that is well, before and after, answers.
  private func watchFailure(
    of line: Plan.Line, _ failure: HubFailure, _ process: NodeProcess, asked: Double
  ) {
    let calm = 10.0
    guard isAble(process, for: world.seconds - asked + calm) else { return }
    let length = world.seconds - asked + 2 * calm
    world.after(calm, at: World.clients) { [self] in
      guard !world.isClosing, isAble(process, for: length) else { return }
      expect(
        .answered, false,
        "\(line.id) is answered \(failure.status) by node \(process.place), which is well: "
          + (failure.message ?? ""))
    }
  }

  /// A try of a line has ended without an answer, and may still be done.
  private func doubt(_ line: Plan.Line) {
    let end = world.seconds + Acknowledged<Int>.straggling
    observations.noteUnansweredChange(of: changedLanes(line), until: end)
  }

  /// Begins what a line says.
  func begin(_ line: Plan.Line) {
    clientsUnderWay += 1
    Task {
      await perform(line)
      clientsUnderWay -= 1
    }
  }

  private func perform(_ line: Plan.Line) async {
    let began = world.seconds
    switch line.act {
    case .put, .patch, .delete: await changeDevice(line, since: began)
    case .register, .unregister: await changeRegistration(line, since: began)
    case .send, .direct, .batch, .schedule: await send(line, line)
    case .again:
      guard let first = plan.lines.first(where: { $0.id == line[0] }) else { return }
      await send(first, line)
    case .cancel, .abort: await callOff(line)
    case .credential: await changeCredential(line)
    case .createHub, .deleteHub: await changeHub(line, since: began)
    case .erase:
      let (hub, user) = (line[0], line[1])
      let removal = observations.erasures.begin(hub)
      let reply = await insist(line) { service in
        _ = try await service.eraseUser(
          hub: service.hub(named: Names.hub(hub)), userID: Names.user(user))
      }
      observations.erasures.end(removal, at: lastMoment(of: reply))
      if case .refused = reply { return }
      ledger.remove(
        user: user, hub: hub, since: began, at: world.seconds, isCertain: reply.isValue)
    case .look: await look(line)
    default: break
    }
  }

  /// Until when what was asked for may be done; `nil` when it will not be.
  private func lastMoment<Value>(of reply: Reply<Value>) -> Double? {
    switch reply {
    case .value: world.seconds
    case .refused: nil
    case .nothing: world.seconds + Acknowledged<Int>.straggling
    }
  }

  // MARK: Devices

  private func changeDevice(_ line: Plan.Line, since began: Double) async {
    let place = Ledger.DeviceKey(hub: line[0], device: line[1])
    let (hub, id) = (Names.hub(line[0]), Names.device(line[1]))
    let reply: Reply<Bool>
    switch line.act {
    case .put:
      let body = Self.installation(line)
      reply = await insist(line) { service in
        try await service.installations.put(hub: service.hub(named: hub), id: id, body: body)
        return true
      }
    case .patch:
      let value = Names.tags(line[2]).joined(separator: ",")
      let body = Array(
        #"[{"op":"replace","path":"/tags","value":"\#(value)"}]"#.utf8)
      reply = await insist(line) { service in
        try await service.installations.patch(hub: service.hub(named: hub), id: id, body: body)
        return true
      }
    default:
      reply = await insist(line) { service in
        try await service.installations.delete(hub: service.hub(named: hub), id: id)
        return true
      }
    }
    if case .refused = reply { return }
    let (now, isCertain) = (world.seconds, reply.isValue)
    switch line.act {
    case .put:
      ledger.note(
        place, handle: line[2], tags: line[3], user: line[4], since: began, at: now,
        isCertain: isCertain)
    case .patch: ledger.note(place, tags: line[2], since: began, at: now, isCertain: isCertain)
    default:
      ledger.note(
        place, handle: nil, tags: nil, user: nil, since: began, at: now, isCertain: isCertain)
    }
  }

  private static func installation(_ line: Plan.Line) -> [UInt8] {
    let handle = line[2]
    let tags = Names.tags(line[3]).map { "\"\($0)\"" }.joined(separator: ",")
    let user = line[4] == 0 ? "" : #""userId":"\#(Names.user(line[4]))","#
    let platform = Names.platform(ofHandle: handle)
    let body = String(decoding: message(platform, "$(message)"), as: UTF8.self)
      .replacing("\"", with: "\\\"")
    let toast = platform == .wns ? #","headers":{"X-WNS-Type":"wns/toast"}"# : ""
    let templates = line[5] == 0 ? "" : #","templates":{"main":{"body":"\#(body)"\#(toast)}}"#
    let channel =
      switch Names.channel(handle) {
      case .handle(let text): "\"\(text)\""
      case .subscription(let endpoint, let key, let secret):
        #"{"endpoint":"\#(endpoint)","p256dh":"\#(key)","auth":"\#(secret)"}"#
      }
    return Array(
      (#"{"installationId":"\#(Names.device(line[1]))",\#(user)"#
        + #""platform":"\#(platform.rawValue)","pushChannel":\#(channel),"tags":[\#(tags)]\#(templates)}"#)
        .utf8)
  }

  private func changeRegistration(_ line: Plan.Line, since began: Double) async {
    if line.act == .register {
      let (hub, handle) = (Names.hub(line[0]), line[1])
      let registration = Registration(
        platform: Names.platform(ofHandle: handle), channel: Names.channel(handle),
        tags: Names.tags(line[2]).map { Tag(rawValue: $0) })
      let reply = await insist(line) { service in
        try await service.registrations.create(hub: service.hub(named: hub), registration).id
      }
      guard case .value(let id) = reply else { return }
      var known = Ledger.Registration(hub: line[0], id: id, handle: handle)
      known.isThere.note(true, since: began, at: world.seconds, isCertain: true)
      ledger.registrations[line.id] = known
      return
    }
    guard let known = ledger.registrations[line[0]] else { return }
    let reply = await insist(line) { service in
      try await service.registrations.delete(
        hub: service.hub(named: Names.hub(known.hub)), id: known.id, condition: .none)
    }
    // 404 says as well that it is gone.
    ledger.registrations[line[0]]?.isThere
      .note(false, since: began, at: world.seconds, isCertain: reply.isFinal)
  }

  // MARK: Sends

  /// - Parameters:
  ///   - what: The line that says what is sent: its number is in the message, and is the key.
  ///   - line: That which sends it, another one for a repeat.
  private func send(_ what: Plan.Line, _ line: Plan.Line) async {
    let (hub, began) = (what[0], world.seconds)
    let hasKey = what.act != .send || what[3] == 0
    guard hasKey || line.id == what.id else { return }
    var headers: [(name: String, value: String)] = []
    if hasKey { headers.append(("Idempotency-Key", "key-\(what.id)")) }
    let body: [UInt8]
    var direct = false
    switch what.act {
    case .direct:
      direct = true
      let platform = Names.platform(ofHandle: what[1])
      let channel = Names.channel(what[1])
      headers.append(("ServiceBusNotification-DeviceHandle", channel.handle))
      if case .subscription(_, let key, let secret) = channel {
        headers += [("P256DH", key), ("Auth", secret)]
      }
      headers += Self.headers(platform)
      body = Self.message(platform, "line \(what.id)")
    case .batch:
      let first = what[1] - what[1] % 4
      let handles = (first..<(first + max(1, what[2]))).filter {
        Names.platform(ofHandle: $0) == .apns
      }
      headers += Self.headers(.apns)
      headers.append(("Content-Type", "multipart/mixed; boundary=\"b\""))
      body = Self.batch(Self.message(.apns, "line \(what.id)"), handles.map(Names.handle))
    default:
      headers += Self.headers(Self.kinds[what[1]])
      if let tags = Names.expression(what[2]) {
        headers.append(("ServiceBusNotification-Tags", tags))
      }
      body = Self.message(Self.kinds[what[1]], "line \(what.id)")
    }
    if what.act == .schedule {
      // By what the client takes for the time, and the same in every repeat.
      let due = World.start.addingTimeInterval(Self.due(what))
      headers.append(("ServiceBusNotification-ScheduleTime", due.formatted(.iso8601)))
    }
    let (fields, name, act, isDirect) = (headers, Names.hub(hub), what.act, direct)
    let reply = await insist(line, tries: hasKey ? 6 : 1) { service in
      let hub = try await service.hub(named: name)
      let record =
        switch act {
        case .schedule: try await service.schedule(hub: hub, headers: fields, body: body)
        case .batch: try await service.sendBatch(hub: hub, headers: fields, body: body)
        default:
          try await isDirect
            ? service.sendDirect(hub: hub, headers: fields, body: body)
            : service.send(hub: hub, headers: fields, body: body)
        }
      return record.id
    }
    guard case .value(let id) = reply else {
      if case .refused(let failure) = reply { note("\(line.id) is refused: \(failure)") }
      return
    }
    note("\(line.id) is accepted as \(id.rawValue)")
    var send = ledger.sends[what.id] ?? .init(hub: hub, since: began)
    if !send.ids.contains(id) {
      send.ids.append(id)
      send.answeredAt = world.seconds
    }
    ledger.sends[what.id] = send
    // To a node that does not know yet that the time was set back, a key of today has expired.
    if hasKey, !mayBeErased(what.id, since: send.since), !observations.hasSkippedDays,
      areClocksKnown,
      !observations.deletions.mayBeDone(hub, since: send.since)
    {
      expect(
        .oneNotification, send.ids.count == 1 || send.isDoubtful,
        "the key of \(what.id) has made \(send.ids.map(\.rawValue))")
    }
  }

  /// Notifications for an erased user alone are deleted with their keys; those for everyone are not.
  func mayBeErased(_ line: Int, since moment: Double) -> Bool {
    guard let what = lines[line] else { return false }
    let isForAll = [.send, .schedule].contains(what.act) && Names.expression(what[2]) == nil
    return !isForAll && observations.erasures.mayBeDone(what[0], since: moment)
  }

  /// The kind of message, by its number in a plan; `nil` fills in templates.
  static let kinds: [PushPlatform?] = [.apns, .fcmv1, nil, .wns, .browser]

  private static func headers(_ platform: PushPlatform?) -> [(name: String, value: String)] {
    let format =
      switch platform {
      case nil: "template"
      case .fcmv1: "fcmv1"
      case .wns: "windows"
      case .browser: "browser"
      default: "apple"
      }
    return [("ServiceBusNotification-Format", format)]
      + (platform == .wns ? [("X-WNS-Type", "wns/toast")] : [])
  }

  private static func message(_ platform: PushPlatform?, _ text: String) -> [UInt8] {
    let message =
      switch platform {
      case .apns: #"{"aps":{"alert":"\#(text)"}}"#
      case .fcmv1: #"{"message":{"notification":{"body":"\#(text)"}}}"#
      case .wns:
        #"<toast><visual><binding template="T"><text>\#(text)</text></binding></visual></toast>"#
      default: #"{"message":"\#(text)"}"#
      }
    return Array(message.utf8)
  }

  private static func batch(_ message: [UInt8], _ handles: [String]) -> [UInt8] {
    let list = handles.map { "\"\($0)\"" }.joined(separator: ",")
    return Array(
      "--b\r\nContent-Type: application/json\r\nContent-Disposition: inline; name=notification\r\n\r\n"
        .utf8) + message
      + Array(
        "\r\n--b\r\nContent-Type: application/json\r\nContent-Disposition: inline; name=devices\r\n\r\n[\(list)]\r\n--b--\r\n"
          .utf8)
  }

  private func callOff(_ line: Plan.Line) async {
    guard let send = ledger.sends[line[0]], let id = send.ids.first else { return }
    let name = Names.hub(send.hub)
    if line.act == .cancel {
      let reply = await insist(line) { service in
        try await service.cancelScheduled(hub: service.hub(named: name), id: id)
      }
      guard reply.isValue else { return }
      note("\(line[0]) is cancelled")
      ledger.sends[line[0]]?.cancelledAt = world.seconds
    } else {
      let reply = await insist(line) { service in
        _ = try await service.abort(hub: service.hub(named: name), id: id)
      }
      guard reply.isValue else { return }
      note("\(line[0]) is aborted")
      ledger.sends[line[0]]?.abortedAt = world.seconds
      let isOpen = !database.state.notifications.active { $0.record.id == id }.isEmpty
      if isOpen { observations.openAborts.insert(line[0]) }
    }
  }

  // MARK: Hubs

  /// The lanes whose credentials a line changes.
  private func changedLanes(_ line: Plan.Line) -> [Lane] {
    switch line.act {
    case .credential:
      [Lane(hub: line[0], service: LifeServices.service(Names.platforms[line[1]]))]
    case .createHub, .deleteHub: lanes(of: line[0])
    default: []
    }
  }

  func lanes(of hub: Int) -> [Lane] { pushServices.map { Lane(hub: hub, service: $0) } }

  private func changeCredential(_ line: Plan.Line) async {
    let (hub, name) = (line[0], Names.hub(line[0]))
    let (platform, state) = (Names.platforms[line[1]], line[2])
    // The last word is the one that sets it right when all is healed, not that of a client who has been
    // trying since before, nor of a try whose answer was lost.
    let service = LifeServices.service(platform)
    let lane = Lane(hub: hub, service: service)
    while line.id < 0, !world.isClosing,
      observations.hasChanged([lane], since: world.seconds)
    {
      await world.wait(1)
    }
    let isAlone = observations.changes(of: lane).underWay == 0
    observations.beginChange(of: [lane])
    defer { observations.endChange(of: [lane], at: world.seconds) }
    let number = observations.changes(of: lane).begun
    observations.righted[service] = nil
    observations.given[lane] = nil
    let reply = await insist(line, tries: healedAt != nil ? 60 : 6) { [world] service in
      if state == 2 {
        try await service.credentials.remove(platform, hub: name)
      } else if let gateways = service.gateways {
        try await service.credentials.set(
          Life.credential(platform, of: hub, state, at: service.clock.now()), hub: name,
          checkedBy: gateways)
      }
      return world.current
    }
    observations.righted[service] = nil
    observations.given[lane] = nil
    // Of two at a time either may be the last, whichever is answered last.
    guard isAlone, observations.changes(of: lane).begun == number else { return }
    guard case .value(let place) = reply, [0, 2, 3].contains(state),
      world.seconds >= observations.changes(of: lane).settledAt
    else { return }
    observations.given[lane] = (state, world.seconds, place)
    // Which hub a refused request is of does not show.
    guard state != 2, plan[.hubs] == 1 else { return }
    observations.righted[service] = (world.seconds, place)
  }

  private func changeHub(_ line: Plan.Line, since began: Double) async {
    let (name, isMade) = (Names.hub(line[0]), line.act == .createHub)
    let removal = isMade ? nil : observations.deletions.begin(line[0])
    let lanes = changedLanes(line)
    observations.beginChange(of: lanes)
    defer { observations.endChange(of: lanes, at: world.seconds) }
    let reply = await insist(line) { service in
      if isMade {
        _ = try await service.createHub(named: name)
      } else {
        try await service.deleteHub(named: name)
      }
    }
    if let removal { observations.deletions.end(removal, at: lastMoment(of: reply)) }
    if case .refused = reply { return }
    ledger.hubs[line[0], default: Acknowledged(false)]
      .note(isMade, since: began, at: world.seconds, isCertain: reply.isValue)
    if !isMade {
      ledger.remove(
        user: nil, hub: line[0], since: began, at: world.seconds, isCertain: reply.isValue)
      for key in ledger.registrations.keys where ledger.registrations[key]?.hub == line[0] {
        ledger.registrations[key]?.isThere
          .note(false, since: began, at: world.seconds, isCertain: reply.isValue)
      }
    }
  }

  private func look(_ line: Plan.Line) async {
    let (name, subject) = (Names.hub(line[0]), line[1])
    let last = ledger.sends.filter { $0.value.hub == line[0] }.max { $0.key < $1.key }?.value.ids
      .last
    _ = await insist(line, tries: 1) { service in
      let hub = try await service.hub(named: name)
      switch subject {
      case 0: _ = try await service.audienceCount(hub: hub, tags: nil)
      case 1: _ = try await service.statistics(hub: hub, .init())
      case 2: _ = try await service.feedbackHours(hub: hub)
      case 3: _ = try await service.credentials.states(hub: hub)
      case 4: _ = try await service.hubs()
      case 5: _ = try await service.activity(.init(), hub: hub, after: nil, limit: 5)
      case 6:
        _ = try await service.installations.list(
          hub: hub, .init(asOf: service.clock.now()), after: nil, limit: 5)
      case 7:
        _ = try await service.notifications.list(
          hub: hub, .init(), in: .newestFirst, after: nil, limit: 5)
      default:
        guard let last else { return }
        switch subject {
        case 8: _ = try await service.notifications.progress(of: last, hub: hub)
        case 9: _ = try await service.notifications.errors(of: last, hub: hub, after: 0, limit: 5)
        default:
          _ = try await service.explain(
            last, hub: hub, device: .installation(Names.device(subject)))
        }
      }
    }
  }
}

extension Life.Reply {
  var isValue: Bool { if case .value = self { true } else { false } }
  /// An answer, whichever.
  var isFinal: Bool { if case .nothing = self { false } else { true } }
}
