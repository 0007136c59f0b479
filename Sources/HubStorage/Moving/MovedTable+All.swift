import HubCore
import SQLDatabase

/// Everything that is moved, in the order in which it is written.
extension MovedTable {
  static let all: [MovedTable] =
    directory + [installations, registrations, removed] + work + outcomes

  /// The tables that are not moved, with the reasons.
  static let left: [String: String] = [
    "store_state": "each database has its own; the last numbers given out go on above those in use",
    "registration_key": "each database has its own; what was made with the old one is written out",
    "directory": "a version for the processes that have the database open",
    "deleted_hub": "what is left of hubs that are being deleted is not moved",
    "node": "the nodes that work on the database",
    "lane_finding": "what those nodes tell each other",
    "failed_sign_in": "wrong passwords, remembered for minutes",
    "schema_step": "of the database itself",
    "commit_mark": "tells of transactions under way",
    "schema_version": "of the database itself",
    "move_state": "how far a move has come",
    "moved": "that the hub was moved away from it",
    "template": "the texts of templates go with registrations and installations",
    "tag": "made again from the tags of registrations",
    "tag_part": "made again from the tags of registrations",
    "tag_log": "made again from the tags of registrations",
    "device_key": "made again from installations and registrations",
    "key_log": "made again from installations and registrations",
    "registration_handle": "made again from registrations",
    "registration_total": "counted again",
    "registration_count": "counted again",
  ]

  /// Excludes rows of hubs that are being deleted.
  private static let ofHub = "t.hub = 0 OR t.hub IN (SELECT id FROM hub)"
  private static let ofNotification =
    "EXISTS (SELECT 1 FROM notification n JOIN hub ON hub.id = n.hub WHERE n.id = t.notification)"

  private static let directory = [
    MovedTable(.hub),
    MovedTable(.accessPolicy, where: ofHub),
    MovedTable(
      .pushCredential,
      where: ofHub),
    MovedTable(.operatorSession),
    MovedTable(.activity),
    // The job then has no owner: the next node that looks for one takes it over.
    MovedTable(.job, where: ofHub),
  ]

  // MARK: Notifications

  private static let work = [
    MovedTable(
      .notification, where: ofHub,
      file: { $0.constants = ["position": "0", "is_audience_read": "0"] },
      database: {
        $0.expressions = ["last_registration": "t.last_registration >> 8"]
        $0.written = ["last_registration": "?::int8 << 8 | 255"]
      }),
    MovedTable(.notificationTarget, where: ofNotification),
    MovedTable(.idempotencyKey, where: ofHub),
    progress,
    MovedTable(
      .retry, where: ofNotification,
      file: { readDevices(of: "retry", &$0) },
      database: {
        $0.from = "retry AS t JOIN notification m ON m.id = t.notification"
        $0.expressions = ["registration": sequential("m.is_direct")]
        // A target belongs to one part only.
        $0.order = MovedColumn.list("notification:i part:i raw:i")
        $0.expressions["raw"] = "t.registration"
        $0.write = { session, rows in
          var form = MovedTable.retry.database
          // The part of its slot, where the work has one.
          form.constants = [
            "part": """
            (SELECT CASE WHEN MAX(part) > 0 THEN \(session.slots.sqlSlot(ofNumber: "?2::int8")) + 1
              ELSE 0 END FROM work WHERE notification = ?1)
            """
          ]
          try form.insert(
            rows.map(session.slots.numbered), MovedTable.retry.columns, on: session.connection)
        }
      }),
  ]
  private static var retry: MovedTable { work[4] }

  /// The progress of a notification. A file has one position; a database has parts at different
  /// positions. When a notification moves to a database, each part of a broadcast gets the position
  /// of the file. When it moves to a file, the common position of its parts is kept; if they
  /// differ, its last targets become retries: ``MoveEnd/visitTargetsLeft(limit:_:)``.
  private static let progress = MovedTable(
    "work", MovedColumn.list("notification:i position:i is_read:i kept:i audience:i"),
    order: MovedColumn.list("notification:i"),
    where: "t.state <> 'Scheduled' AND t.hub IN (SELECT id FROM hub)",
    file: {
      $0.tables = []
      $0.from = "notification AS t"
      $0.expressions = [
        "notification": "t.id", "is_read": "t.is_audience_read",
        "audience": "CASE WHEN t.ended_at IS NULL THEN t.audience_commit END",
      ]
      $0.finish = { row, _, reading in row["audience"] = reading.place(of: row["audience"]) }
      $0.statement = """
        UPDATE notification SET position = ?2, is_audience_read = ?3, kept = ?4,
          audience_commit = COALESCE(?5, 0) WHERE id = ?1
        """
    },
    database: {
      $0.from = """
        notification AS t CROSS JOIN LATERAL (
          SELECT COUNT(*) AS parts, COALESCE(MAX(position), 0) AS position, MAX(kept) AS kept,
            COALESCE(MIN(is_read), 0) AS least, \(uneven) AS uneven
          FROM work w WHERE w.notification = t.id) AS w
        """
      $0.expressions = [
        "notification": "t.id",
        "position": "CASE WHEN t.is_direct = 1 THEN w.position ELSE w.position >> 8 END",
        "is_read":
          "CASE WHEN t.ended_at IS NULL AND w.parts > 1 THEN w.uneven ELSE w.least END",
        "kept": "w.kept", "audience": "CASE WHEN t.ended_at IS NULL THEN t.audience_snapshot END",
      ]
      $0.kinds = ["audience": .text]
      $0.finish = { row, _, reading in row["audience"] = reading.place(of: row["audience"]) }
      $0.write = { session, rows in
        let insert = try session.connection.statement(
          """
          INSERT INTO work (notification, part, hub, position, is_read, is_done, kept)
          SELECT id, new.part, hub,
            CASE WHEN is_direct = 1 OR ?2::int8 = 0 THEN ?2 ELSE ?2 << 8 | 255 END, ?3,
            CASE WHEN ended_at IS NULL THEN 0 ELSE 1 END, ?4
          FROM notification CROSS JOIN unnest(
            CASE WHEN is_direct = 1 OR ended_at IS NOT NULL OR ?3::int2 = 1 THEN ARRAY[0::int2]
              ELSE ?5::int2[] END) AS new (part)
          WHERE id = ?1
          """)
        let slots = session.slots
        try insert.bind(
          PostgresArray.int2(AudiencePart.all(slots).map { Int64($0.number(in: slots)) }), at: 5)
        let update = try session.connection.statement(
          "UPDATE notification SET audience_snapshot = ?2 WHERE id = ?1")
        for row in rows {
          for (index, column) in ["notification", "position", "is_read", "kept"].enumerated() {
            try row[column].bind(to: insert, at: Int32(index + 1))
          }
          try insert.run()
          insert.reset()
          guard let place = row["audience"].integer else { continue }
          // It sees the transactions of this rank and below; see ``PostgresSession/move(_:)``.
          let next = firstTransaction + place + 1
          try row["notification"].bind(to: update, at: 1)
          try update.bind("\(next):\(next):", at: 2)
          try update.run()
          update.reset()
        }
      }
    })

  /// The number of the first ordinary transaction of a PostgreSQL database, before any user's. The
  /// transactions that wrote registrations elsewhere are given their ranks from here on.
  static let firstTransaction: Int64 = 3

  /// 1 when some part of a notification's work is further than another, or is read; over rows of
  /// `work`.
  static let uneven = """
    COALESCE(GREATEST(MAX(is_read), MAX(is_done),
      CASE WHEN MIN(position) < MAX(position) THEN 1 ELSE 0 END), 0)
    """

  /// A registration's number without its slot; the number of a direct target has none.
  private static func sequential(_ isDirect: String) -> String {
    "CASE WHEN \(isDirect) = 1 THEN t.registration ELSE t.registration >> 8 END"
  }

  /// Reads what determines the slot of a registration from its number, if it still exists.
  private static func readDevices(
    of table: String, _ form: inout Form<ReadSession, WriteSession>
  ) {
    form.from = """
      \(table) AS t JOIN notification m ON m.id = t.notification
      LEFT JOIN registration r ON m.is_direct = 0 AND r.id = t.registration
      LEFT JOIN installation i ON i.id = r.installation AND r.installation <> 0
      """
    form.expressions["place"] = "COALESCE(i.public_id, r.public_id)"
    form.expressions["live"] = "r.id"
    form.expressions["direct"] = "m.is_direct"
    form.expressions["home"] = "m.hub"
    form.extra = MovedColumn.list("place:t live:i direct:i home:i")
    form.finish = { row, _, reading in reading.finishDevice(&row) }
  }

  /// The day of the notification that a row begins with; see ``DayTable``.
  private static let ofDay = "(SELECT day FROM notification WHERE id = ?1)"

  // MARK: What came of it

  private static let outcomes = [
    MovedTable(
      .notificationCount, where: ofNotification,
      database: {
        $0.from = """
          (SELECT notification, platform, is_template, outcome, CAST(SUM(total) AS BIGINT) AS total
          FROM notification_count GROUP BY 1, 2, 3, 4) AS t
          """
        $0.constants = ["part": "0"]
      }),
    MovedTable(
      .notificationFailure, where: ofNotification,
      file: {
        readDevices(of: "notification_failure", &$0)
      },
      database: {
        $0.from = """
          notification_failure AS t JOIN notification m ON m.id = t.notification
          LEFT JOIN registration r ON m.is_direct = 0 AND r.hub = m.hub
            AND r.slot = %slot(t.registration) AND r.id = t.registration
          """
        $0.expressions = [
          "registration": sequential("m.is_direct"), "raw": "t.registration", "live": "r.id",
          "direct": "m.is_direct", "home": "m.hub",
        ]
        $0.order = MovedColumn.list("day:i notification:i raw:i")
        $0.extra = MovedColumn.list("raw:i live:i direct:i home:i")
        $0.finish = { row, _, reading in reading.finishDevice(&row) }
        $0.write = { session, rows in
          var form = MovedTable.failure.database
          form.constants = ["day": ofDay]
          try form.insert(
            rows.map(session.slots.numbered), MovedTable.failure.columns, on: session.connection)
        }
      }),
    MovedTable(
      "kept_outcome", MovedColumn.list("notification:i hub:i total:i at:i"),
      order: MovedColumn.list("notification:i"), where: ofHub,
      file: {
        $0.tables = []
        $0.from = """
          (SELECT id AS notification, hub, kept_rows AS total, kept_at AS at FROM notification
          WHERE kept_at IS NOT NULL) AS t
          """
        $0.statement =
          "UPDATE notification SET kept_rows = ?3, kept_at = ?4 WHERE id = ?1 AND hub = ?2"
      },
      database: {
        $0.from = """
          (SELECT notification, hub, CAST(SUM(total) AS BIGINT) AS total, MAX(at) AS at
          FROM kept_outcome GROUP BY 1, 2) AS t
          """
        $0.constants = ["part": "0"]
      }),
    MovedTable(
      .feedback, where: ofHub,
      file: {
        // Numbered when the move ends.
        $0.constants = ["number": "0"]
        $0.finish = { row, _, reading in reading.finishFeedback(&row) }
      },
      database: {
        $0.order = MovedColumn.list("hour:i id:i")
        $0.expressions = ["registration": "t.registration >> 8", "raw": "t.registration"]
        $0.extra = MovedColumn.list("raw:i")
        // Only the existence matters: the id is written out.
        $0.written = ["registration": "?::int8 << 8"]
        $0.finish = { row, _, reading in reading.finishFeedback(&row) }
      }),
    MovedTable(
      .statisticCount, where: ofHub,
      database: {
        $0.from = """
          (SELECT hub, period, at, platform, code, CAST(SUM(total) AS BIGINT) AS total
          FROM statistic_count GROUP BY 1, 2, 3, 4, 5) AS t
          """
        $0.constants = ["lane": "0"]
      }),
    MovedTable(.statisticGauge, where: ofHub),
  ]
  private static var failure: MovedTable { outcomes[1] }
}

extension MoveReading {
  /// The index of a notification's acceptance among the marks.
  fileprivate func place(of mark: MovedValue) -> MovedValue {
    MovedValue(marks.firstIndex(of: mark).map { Int64($0) })
  }

  /// Writes out the public id of a registration that has been deleted, and what determines the slot
  /// of one that has not: ids follow from numbers only in their own database.
  fileprivate func finishDevice(_ row: inout MovedRow) {
    guard row["direct"].integer == 0, let hub = row["home"].integer,
      let number = row["raw"].integer ?? row["registration"].integer
    else { return }
    let id = coding.id(of: number, hub: hub)
    if row["live"].isNull {
      if row["public_id"].isNull { row["public_id"] = .text(id) }
    } else if row["place"].isNull {
      row["place"] = .text(id)
    }
  }

  fileprivate func finishFeedback(_ row: inout MovedRow) {
    guard row["public_id"].isNull, let hub = row["hub"].integer,
      let number = row["raw"].integer ?? row["registration"].integer, number != 0
    else { return }
    row["public_id"] = .text(coding.id(of: number, hub: hub))
  }
}

extension DeviceSlots {
  /// The row with the number that its registration has here.
  func numbered(_ row: MovedRow) -> MovedRow {
    guard row["direct"].integer != 1, let number = row["registration"].integer else { return row }
    var row = row
    row["registration"] = .integer(self.number(number, in: row["place"].text))
    return row
  }

  /// The number of a row whose number was assigned by another database.
  /// - Parameter place: The id of the device for clients; `nil` when the row names a deleted one.
  func number(_ number: Int64, in place: String?) -> Int64 {
    self.number(number, slot: place.map { slot(of: $0) } ?? slot(ofNumber: number))
  }
}
