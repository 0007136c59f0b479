import Foundation

/// A push that a service has taken.
struct Push {
  let seconds: Double
  /// As it is stored.
  let handle: String
  /// The same in each repeat; empty where the service takes none.
  let id: String
  /// The line of the plan that its message names.
  let line: Int?
  let place: ProcessID

  init(_ call: ServiceCall, at seconds: Double, from place: ProcessID) {
    self.seconds = seconds
    handle = Names.handle(call.handle, of: call.service)
    id = call.id
    line = Names.line(in: call.body)
    self.place = place
  }
}

/// The answers of services that ask their senders for patience.
struct PaceRecords {
  /// A credential at a service; a token service is none of its own.
  struct Key: Hashable {
    let service: SimulatedService
    let credential: String

    init(_ call: ServiceCall) {
      service = call.service.pushService
      credential = call.credential
    }

    private init(_ service: SimulatedService, _ credential: String) {
      self.service = service
      self.credential = credential
    }

    /// The same service, of calls that showed no credential, or a token that it does not know.
    var unnamed: Key { Key(service, "") }
  }

  struct Pause {
    /// When the first answer that asked for it arrived.
    let since: Double
    let until: Double
  }

  /// By credential and the process that was asked. Each counts by itself: one that is asked for while
  /// another is on may be longer, and is to be heeded only once it has been heard of.
  var pauses: [Key: [ProcessID: [Pause]]] = [:]
  /// Of pushes that were put off by themselves, by their id.
  var devices: [String: (place: ProcessID, pause: Pause)] = [:]
  /// When a credential was refused, without a word to the contrary since.
  var refusals: [Key: [ProcessID: [Double]]] = [:]
  /// When a process last sent what had no answer: the others of its batch are heard late.
  var unheard: [ProcessID: Double] = [:]
  /// From a process to a service.
  struct Way: Hashable {
    let place: ProcessID
    let service: SimulatedService
  }

  struct UnderWay {
    /// Those of the pushes, with the moments of their answers.
    var pushes: [(key: Observations.PushKey, until: Double)] = []
    /// Answers on the connections of now may be lost until then.
    var losesUntil = -Double.infinity
  }

  var underWay: [Way: UnderWay] = [:]
  /// When the last answer arrives at a process that it has to wait for long: the rest of a batch may
  /// follow it, as APNs takes one push alone until it has seen a token.
  var slowUntil: [ProcessID: Double] = [:]
}

extension Life {
  /// Time until a process, or another one that has to be told, heeds what a service has said, in
  /// seconds: what is under way ends, and nodes exchange their news every two.
  static let reactionTime = 5.0
  /// The longest that a gateway waits for an answer, in seconds.
  private static let patience = 60.0

  // MARK: At every request

  /// With a connection the answers of all that is under way on it are lost.
  private func watchLosses(_ call: ServiceCall, _ place: ProcessID) {
    let (now, way) = (world.seconds, PaceRecords.Way(place: place, service: call.service))
    var records = observations.pace.underWay[way] ?? .init()
    let key = Names.line(in: call.body).map {
      Observations.PushKey(line: $0, handle: Names.handle(call.handle, of: call.service))
    }
    if now < records.losesUntil, let key { observations.unheard[key, default: 0] += 1 }
    records.pushes.removeAll { $0.until < now }
    if let key { records.pushes.append((key, now + call.delay)) }
    if !call.isAnswered {
      if now >= records.losesUntil {
        for (key, _) in records.pushes { observations.unheard[key, default: 0] += 1 }
      }
      // The sender learns of it with what would have been the answer, or gives up.
      records.losesUntil = max(records.losesUntil, now + min(call.delay, Self.patience) + 1)
    }
    observations.pace.underWay[way] = records
  }

  /// A push service has got a request, and acted on it.
  func saw(_ call: ServiceCall) {
    let place = world.current
    watchCredential(call, place)
    watchPauses(call, place)
    watchRefusals(call, place)
    watchReplaced(call, place)
    watchGiven(call, place)
    watchWindow(call, place)
    watchRetry(call, place)
    observations.answers.note(call, lanes(of: call))
    watchTrouble(call)
    watchHandles(call, place)
    watchCondemned(call, place)
    if !call.isAnswered {
      observations.pace.unheard[place] = world.seconds
      // It may have been acted on, as may what else was under way on its connection.
      observations.isDisturbed = true
    }
    watchLosses(call, place)
    if call.isTaken, !call.service.isForTokens {
      taken(Push(call, at: world.seconds, from: place))
    }
    if call.delay > 1 {
      // The others of its batch are sent when this one is answered.
      observations.pace.unheard[place] = world.seconds
      let end = world.seconds + call.delay
      observations.pace.slowUntil[place] = max(observations.pace.slowUntil[place] ?? 0, end)
    }
  }

  /// One clock that is set wrong spoils no token, be it the machine's or the database's.
  private func watchCredential(_ call: ServiceCall, _ place: ProcessID) {
    // A connection whose token changes soon after it was made gets 429; others take it.
    guard call.status != 429 else { return }
    guard !observations.stepped.isEmpty || call.refusal == .untimely, call.isAnswered else {
      return
    }
    guard !observations.hadWrongDatabase.contains(place), !observations.hasUnseenStep,
      !observations.stepped.contains(-1) || !observations.stepped.contains(call.node)
    else { return }
    expect(
      .credentialHolds, call.refusal != .untimely,
      "\(call.service.rawValue) answers \(call.status) \(call.reason) to node \(place)")
  }

  /// Whether what a process knows has come to it, and what it does is its own will, since a moment.
  func isItself(_ place: ProcessID, since moment: Double) -> Bool {
    guard let process = processes.first(where: { $0.place == place }) else { return false }
    return process.isRunning && process.disturbedAt < moment - Self.reactionTime
      && observations.pace.unheard[place].map { $0 < moment - Self.patience } ?? true
  }

  private func watchPauses(_ call: ServiceCall, _ place: ProcessID) {
    // Hubs with one application server key share no connections to browsers' services.
    guard !call.service.isForTokens, call.service != .webPush || plan[.hubs] == 1 else { return }
    let (key, now) = (PaceRecords.Key(call), world.seconds)
    for (asked, pauses) in observations.pace.pauses[key] ?? [:] {
      for pause in pauses
      where pause.since + Self.reactionTime < now && now < pause.until + Self.patience {
        // A credential that was put while the push was under way has not been asked for it, even if it
        // is the same.
        guard
          !observations.hasChanged(lanes(of: call), since: pause.since - Self.reactionTime),
          isItself(place, since: pause.since),
          isItself(asked, since: pause.since)
        else { continue }
        expect(
          .pace, now >= pause.until - 1,
          "node \(place) sends to \(call.service.rawValue) with \(call.credential), and node "
            + "\(asked) was asked at \(moment(pause.since)) for a pause until \(moment(pause.until))"
        )
      }
    }
    if let (asked, pause) = observations.pace.devices[call.id], pause.since < now, isAlone(call),
      isItself(place, since: pause.since), isItself(asked, since: pause.since)
    {
      expect(
        .pace, now >= pause.until - 1,
        "push \(call.id) comes again, and its device was put off at \(moment(pause.since)) "
          + "until \(moment(pause.until))")
    }
    // A fault of the service (500) asks for nothing; it puts off its push alone.
    guard call.isAnswered, let seconds = call.retryAfter,
      [503, 429].contains(call.status) || call.service == .wns && call.status == 406
    else { return }
    let heardAt = now + call.delay
    let pause = PaceRecords.Pause(
      since: heardAt, until: heardAt + min(Double(seconds), lastTry(call, at: heardAt)))
    if call.service == .apns, call.status == 429 {
      if isAlone(call) { observations.pace.devices[call.id] = (place, pause) }
    } else {
      let others = observations.pace.pauses[key]?[place]?.filter { $0.until > now } ?? []
      observations.pace.pauses[key, default: [:]][place] = others + [pause]
    }
  }

  /// Seconds until the last try of the notification that a call is for may come, which cuts a pause
  /// that would be longer.
  private func lastTry(_ call: ServiceCall, at moment: Double) -> Double {
    let since = Names.line(in: call.body).flatMap { observations.numbers[$0] }?
      .compactMap { observations.notifications[$0]?.datedSince }.min()
    // Less than drift and the way to the service take.
    guard let since else { return .infinity }
    let left = since + Double(plan[.window]) - moment - 1
    return max(0, left - min(60, left / 4))
  }

  /// The least pause after an answer that may pass (docs/protocol/push-services/README.md, section 3,
  /// rule 1), in seconds.
  private static let leastPause = 10.0

  /// A push that its service has failed comes again no sooner than it should.
  private func watchRetry(_ call: ServiceCall, _ place: ProcessID) {
    guard !call.service.isForTokens, isAlone(call), let line = Names.line(in: call.body),
      let seen = observations.numbers[line]?.first.flatMap({ observations.notifications[$0] }),
      let since = seen.datedSince
    else { return }
    let key = Observations.PushKey(
      line: line, handle: Names.handle(call.handle, of: call.service))
    let now = world.seconds
    // Another node knows nothing of it, and before the end of its time there is one more try.
    if let failed = observations.failed[key], failed.claims == seen.claims,
      isItself(place, since: failed.at), !observations.hasGoneBack,
      failed.at + 3 * Self.leastPause < since + Double(plan[.window])
    {
      expect(
        .pace, now >= failed.at + Self.leastPause - 0.5,
        "\(line) comes to \(Names.short(key.handle)) again "
          + "\(Texts.seconds(Int((now - failed.at) * 1_000))) s after \(call.service.rawValue) "
          + "failed it")
    }
    observations.failed[key] =
      call.isAnswered && call.status >= 500 && call.retryAfter == nil
      ? (now + call.delay, seen.claims) : nil
  }

  /// Whether a message is for one registration of its device only: each has a push of its own.
  private func isAlone(_ call: ServiceCall) -> Bool {
    guard let line = Names.line(in: call.body),
      let number = observations.numbers[line]?.first, observations.numbers[line]?.count == 1,
      let seen = observations.notifications[number], seen.isNative
    else { return false }
    let handle = Names.handle(call.handle, of: call.service)
    return !seen.isDirect && seen.audience.values.count { $0.handle == handle } <= 1
      && database.state.registrations.count { $0.handle == handle && $0.isNative } <= 1
  }

  /// Faults that make a gateway hang, or retry by itself.
  private static let hangs: Set<Act> = [.silence, .disconnect, .reset, .goAway, .throttle, .fail]

  /// Whether a service had one of these faults since a moment, or a gateway may still hang for one.
  func had(_ faults: Set<Act>, _ service: SimulatedService, since moment: Double) -> Bool {
    plan.lines.contains { line in
      guard faults.contains(line.act) else { return false }
      let isOfService =
        line.act == .withhold
        ? service == .fcm || service == .wns
        : LifeServices.service(Names.platforms[line[0]]) == service
      let length = line.act.length.map { Double(line[$0]) } ?? 0
      let end = Self.time(of: line) + length / 1_000 + 2 * Self.patience
      return isOfService && Self.time(of: line) <= world.seconds && end >= moment
    }
  }

  /// Nothing goes out with a credential that was refused and has been replaced: the process that has
  /// replaced it knows at once, others look each second while notifications wait for it.
  private func watchReplaced(_ call: ServiceCall, _ place: ProcessID) {
    guard call.service == .apns, let righted = observations.righted[.apns], call.status != 429,
      isItself(place, since: righted.at)
    else { return }
    // A gateway that hangs continues with the credential that it began with.
    guard !had(Self.hangs, .apns, since: righted.at) else { return }
    let heeded = righted.at + (place == righted.by ? 0.5 : 4)
    guard world.seconds > heeded else { return }
    expect(
      .credentialHolds, call.refusal != .wrong,
      "node \(place) sends with a credential that was replaced at \(moment(righted.at))")
  }

  /// The credential that a message shows is the one that its hub's client has put last, whatever the service
  /// says; after a removal nothing goes out.
  private func watchGiven(_ call: ServiceCall, _ place: ProcessID) {
    guard !call.service.isForTokens, !call.credential.isEmpty, !observations.hasGoneBack,
      let line = Names.line(in: call.body), let hub = lines[line]?[0],
      let given = observations.given[Lane(hub: hub, service: call.service)],
      !observations.hasChanged(lanes(of: call), since: given.at + 0.001),
      world.seconds > given.at + Self.reactionTime, isItself(place, since: given.at),
      observations.pace.slowUntil[place].map({ $0 < given.at }) ?? true,
      !had(Self.hangs.union([.withhold]), call.service, since: given.at)
    else { return }
    let right = Self.app(of: hub).name(given.state == 3 ? .second : .first, at: call.service)
    expect(
      .credentialHolds, given.state != 2 && call.credential == right,
      "node \(place) sends to \(call.service.rawValue) with \(call.credential), and that was "
        + "\(given.state == 2 ? "removed" : "replaced") at \(moment(given.at))")
  }

  /// A node has looked for a service at a host that has none, as a credential says that leads
  /// nowhere. What waited for that is on its way with the one that has replaced it: a process that
  /// works knows that one within seconds, whatever went wrong before.
  func strayed(to host: String) {
    let place = world.current
    let service: SimulatedService = host.hasSuffix(".push.apple.com") ? .apns : .fcm
    trouble(service, until: world.seconds)
    guard let righted = observations.righted[service], !observations.hasGoneBack,
      !observations.hasChanged([Lane(hub: 0, service: service)], since: righted.at + 0.001),
      let process = processes.first(where: { $0.place == place })
    else { return }
    let isLate =
      world.seconds > righted.at + 2 * Self.reactionTime
      && isAble(process, for: 2 * Self.reactionTime)
    expect(
      .credentialHolds, !isLate,
      "node \(place) looks for \(host), where a credential led that was replaced at "
        + moment(righted.at))
  }

  /// A credential that is refused rests but for a probe, which may try once more with a fresh token.
  private func watchRefusals(_ call: ServiceCall, _ place: ProcessID) {
    // One of a browser tells of its subscription alone.
    guard call.service != .webPush, call.isAnswered,
      !call.service.isForTokens || call.refusal != nil
    else { return }
    let (key, now) = (PaceRecords.Key(call), world.seconds)
    guard call.refusal != nil, call.status != 429 else {
      if call.status < 500 {
        observations.pace.refusals[key] = nil
        // Whose token was revoked does not show.
        observations.pace.refusals[key.unnamed] = nil
      }
      return
    }
    var times = observations.pace.refusals[key]?[place] ?? []
    times.append(now)
    observations.pace.refusals[key, default: [:]][place] = times
    let late = times.filter { $0 > times[0] + Self.reactionTime && $0 > now - 30 }
    // A refusal after which no fresh token was to be had says nothing of the credential yet.
    guard !late.isEmpty, !had([.withhold], key.service, since: times[0]),
      !observations.hasChanged(lanes(of: call), since: times[0] - Self.reactionTime),
      isItself(place, since: times[0])
    else { return }
    expect(
      .pace, late.count <= 2,
      "node \(place) has sent \(late.count) requests in 30 s to \(call.service.rawValue) with "
        + "\(call.credential), which is refused since \(moment(times[0]))")
  }
}
