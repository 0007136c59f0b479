import Foundation
import NotificationHubs
import Wire

/// What the commands about channels have in common.
private enum ChannelHelp {
  static let argument = (
    name: "ID", help: "the channel's id, as `belfry channel create` printed it"
  )
  static let manage = note(right: "Manage")

  static func note(right: String) -> String {
    """
    Belfry only; needs the \(right) right. A channel belongs to the app and the environment of the
    hub's apns credential; APNs keeps it, the hub does not.

    \(HubTarget.note)
    """
  }

  /// An id that none can have is answered here: it would be lost in the address.
  static func id(_ words: Words) throws(UsageError) -> String {
    let id = try words.argument(0)
    guard BroadcastChannel.isID(id) else {
      throw words.fault("'\(id)' is no channel's id; one looks like dHN0LXNyY2gtY2hubA==")
    }
    return id
  }
}

/// `belfry channel create`
struct ChannelCreateCommand: Subcommand {
  static let help = CommandHelp(
    "channel create", "make a broadcast channel, which Live Activities follow",
    options: ClientOptions.options + [
      .value(
        "--storage", "WHAT",
        "latest (default): the newest update waits for who is offline; none: nothing waits, and "
          + "Apple lets you send more often",
        words: [BroadcastChannel.Storage.latestMessage, .noMessage].map(\.rawValue))
    ],
    discussion: """
      All Live Activities of one event, such as a match, follow one channel, and one request updates
      them all. The app hands the printed id to ActivityKit: pushType: .channel(id). An app has at
      most 10 000 channels; delete those whose event is over.

      \(ChannelHelp.manage)
      """,
    examples: ["belfry channel create", "belfry channel create --storage none --json"])

  let client: ClientOptions
  let storage: BroadcastChannel.Storage

  init(_ words: Words) throws {
    client = ClientOptions(words: words)
    let word = words.value("--storage") ?? BroadcastChannel.Storage.latestMessage.rawValue
    guard let storage = BroadcastChannel.Storage(rawValue: word) else {
      throw words.fault("--storage wants latest or none, not '\(word)'")
    }
    self.storage = storage
  }

  func run(in context: CommandContext) async throws {
    let access = try await client.access(.changes("Manage"), in: context)
    let channel = try await access.calling {
      try await access.client.createBroadcastChannel(storing: storage)
    }
    if client.json {
      context.print(String(decoding: channel.json, as: UTF8.self))
      return
    }
    context.print("channel   \(channel.id)")
    context.print("storage   \(channel.storage.sentence)")
    context.print("follow it: belfry phone --channel \(channel.id)")
    context.print(
      "send to it: belfry channel send \(channel.id) --state '{\"score\":1}'")
  }
}

/// `belfry channel list`
struct ChannelListCommand: Subcommand {
  static let help = CommandHelp(
    "channel list", "list the ids of all broadcast channels", options: ClientOptions.options,
    discussion: ChannelHelp.manage,
    examples: ["belfry channel list", "belfry channel list --json"])

  let client: ClientOptions

  init(_ words: Words) throws { client = ClientOptions(words: words) }

  func run(in context: CommandContext) async throws {
    let access = try await client.access(.looks("Manage"), in: context)
    let ids = try await access.calling { try await access.client.broadcastChannels() }
    if client.json {
      context.print(String(decoding: BroadcastChannel.list(ids), as: UTF8.self))
      return
    }
    for id in ids { context.print(id) }
    context.print("\(ids.count) channel\(ids.count == 1 ? "" : "s") of hub \(access.hub)")
  }
}

/// `belfry channel show`
struct ChannelShowCommand: Subcommand {
  static let help = CommandHelp(
    "channel show", "show what APNs knows of a broadcast channel",
    arguments: [ChannelHelp.argument], options: ClientOptions.options,
    discussion: ChannelHelp.manage,
    examples: ["belfry channel show dHN0LXNyY2gtY2hubA=="])

  let id: String
  let client: ClientOptions

  init(_ words: Words) throws {
    id = try ChannelHelp.id(words)
    client = ClientOptions(words: words)
  }

  func run(in context: CommandContext) async throws {
    let access = try await client.access(.looks("Manage"), in: context)
    let channel = try await access.calling { try await access.client.broadcastChannel(id) }
    if client.json {
      context.print(String(decoding: channel.json, as: UTF8.self))
      return
    }
    context.print("channel   \(channel.id)")
    context.print("storage   \(channel.storage.sentence)")
  }
}

/// `belfry channel delete`
struct ChannelDeleteCommand: Subcommand {
  static let help = CommandHelp(
    "channel delete", "delete a broadcast channel; who follows it gets nothing more",
    arguments: [ChannelHelp.argument], options: ClientOptions.options,
    discussion: ChannelHelp.manage,
    examples: ["belfry channel delete dHN0LXNyY2gtY2hubA=="])

  let id: String
  let client: ClientOptions

  init(_ words: Words) throws {
    id = try ChannelHelp.id(words)
    client = ClientOptions(words: words)
  }

  func run(in context: CommandContext) async throws {
    let access = try await client.access(.changes("Manage"), in: context)
    try await access.calling { try await access.client.delete(broadcastChannel: id) }
    if client.json {
      try context.printJSON(["deleted": id])
    } else {
      context.print("channel \(id) is deleted")
    }
  }
}

extension BroadcastChannel.Storage {
  fileprivate var sentence: String {
    switch self {
    case .noMessage: "none: who is offline misses an update"
    case .latestMessage: "latest: the newest update waits for who is offline"
    }
  }
}

/// `belfry channel send`
struct ChannelSendCommand: Subcommand {
  static let help = CommandHelp(
    "channel send", "send an update to all Live Activities that follow a channel",
    arguments: [ChannelHelp.argument],
    options: ClientOptions.options + [
      .value(
        "--state", "FILE",
        "the activity's new content state: a file, - for standard input, or the JSON itself"),
      .flag("--end", "with --state: end the activities with this state"),
      .value("--apns", "FILE", "in place of --state: the whole payload, as it is"),
      .value(
        "--until", "TIME",
        "how long it may wait where the channel stores: 2030-01-05T10:00:00Z, or +10m "
          + "(default: not at all)"),
      .value(
        "--priority", "N", "10 (default), or 5, which does not count against the budget",
        words: ["10", "5", "1"]),
    ],
    discussion: """
      The answer is APNs' own: this returns when APNs has taken the update or refused it. How many
      devices follow the channel nobody tells.

      \(ChannelHelp.note(right: "Send"))
      """,
    examples: [
      "belfry channel send dHN0LXNyY2gtY2hubA== --state '{\"home\":1,\"away\":0}'",
      "belfry channel send dHN0LXNyY2gtY2hubA== --state final.json --end --until +1h",
      "belfry channel send dHN0LXNyY2gtY2hubA== --apns payload.json --priority 5",
    ])

  let id: String
  let client: ClientOptions
  let payload: Data
  let priority: APNsPayload.Priority
  let expiration: APNsPayload.Expiration

  init(_ words: Words) throws {
    id = try ChannelHelp.id(words)
    client = ClientOptions(words: words)
    let number = try words.integer("--priority", in: 1...10) ?? 10
    guard let priority = APNsPayload.Priority(rawValue: number) else {
      throw words.fault("--priority wants 10, 5 or 1, not \(number)")
    }
    self.priority = priority
    expiration =
      try words.value("--until").map {
        .at(try SendDestination.time($0, of: "--until", now: Date(), words))
      } ?? .once
    switch (words.value("--state"), words.value("--apns")) {
    case (let state?, nil):
      let content = try TextInput.json(try TextInput.read(state), of: "--state")
      do {
        payload = try APNsPayload.broadcast(
          words.flag("--end") ? .end() : .update, contentState: PayloadValue(content)
        ).body
      } catch {
        throw words.fault("--state: \(error)")
      }
    case (nil, let file?):
      guard !words.flag("--end") else {
        throw words.fault("--end goes with --state; in an --apns payload it is aps.event")
      }
      payload = try TextInput.read(file)
      _ = try TextInput.json(payload, of: "--apns")
    case (nil, nil): throw words.fault("say what to send: --state FILE, or --apns FILE")
    default: throw words.fault("--state and --apns exclude each other")
    }
  }

  func run(in context: CommandContext) async throws {
    let access = try await client.access(.changes("Send"), in: context)
    let receipt = try await access.calling {
      try await access.client.send(
        payload: payload, toChannel: id, priority: priority, expiration: expiration)
    }
    if client.json {
      context.print(String(decoding: receipt.json, as: UTF8.self))
      return
    }
    context.print("APNs has taken it: request \(receipt.requestID)")
    if let uniqueID = receipt.uniqueID {
      context.print("in the delivery log of Apple's Push Notifications Console: \(uniqueID)")
    }
  }
}
