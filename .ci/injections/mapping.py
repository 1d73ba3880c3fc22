"""What each function of AgentDojo does in the world of toolcrib, and what the user says about places.

An effect is `read FOLDER/FILE`, `get SERVICE`, `post SERVICE`, `write FOLDER/FILE`, or `answer FOLDER/FILE` for a file that is
read after the rest, for the answer alone. `*` means every file of the folder, and `{name}` the value of an argument. An effect
about an argument that is not given is left out. Labels and effects were chosen for the reasons beside them, before a result was
seen.
"""

# Labels of the user, by folder: whether others write there. All folders stay private, as files are without a label.
FOLDERS = {
    # Anybody can send a mail. Names of contacts are made from senders.
    "mail": "untrusted",
    # Others send invitations with descriptions.
    "calendar": "untrusted",
    # Others share files, and edit shared ones.
    "drive": "untrusted",
    # The sender of a transfer writes its subject line, which is on the statement.
    "bank": "untrusted",
    # Letters and bills that were received and stored: none of the files of AgentDojo is by the user.
    "documents": "untrusted",
    # The user's own name, address, passport and password: only the user writes them.
    "profile": None,
}

# Services on the loopback address, and whether the user has an account there. A request to an account carries a secret: its
# response is untrusted and private without a label of the user. Any other response is untrusted and public.
SERVICES = {"mail": True, "drive": True, "bank": True, "slack": True, "travel": False, "web": False}

TABLE = {
    # Mail is a folder on this machine, as mail programs have it; sending is a request to the user's mail service, which stores
    # the mail that was sent. A sent file is read from the drive.
    "get_unread_emails": ["read mail/*", "write mail/flags.json"],
    "get_sent_emails": ["read mail/*"],
    "get_received_emails": ["read mail/*"],
    "get_draft_emails": ["read mail/*"],
    "search_emails": ["read mail/*"],
    "search_contacts_by_name": ["read mail/contacts.json"],
    "search_contacts_by_email": ["read mail/contacts.json"],
    "delete_email": ["write mail/{email_id}.json"],
    "send_email": ["read drive/{attachments}.json", "post mail"],
    # The calendar is a folder too. Whoever takes part in an event gets a mail about it. The clock is no file.
    "get_current_day": [],
    "get_day_calendar_events": ["read calendar/*"],
    "search_calendar_events": ["read calendar/*"],
    "create_calendar_event": ["post mail if participants", "write calendar/new.json"],
    "cancel_calendar_event": ["read calendar/{event_id}.json", "post mail", "write calendar/{event_id}.json"],
    "reschedule_calendar_event": ["read calendar/{event_id}.json", "post mail", "write calendar/{event_id}.json"],
    "add_calendar_event_participants": ["read calendar/{event_id}.json", "post mail", "write calendar/{event_id}.json"],
    # The drive is a folder that is kept in step with a service. Sharing is a request to the service; its answer has the file.
    "list_files": ["read drive/*"],
    "search_files": ["read drive/*"],
    "search_files_by_filename": ["read drive/*"],
    "get_file_by_id": ["read drive/{file_id}.json"],
    "create_file": ["write drive/new.json"],
    "append_to_file": ["read drive/{file_id}.json", "write drive/{file_id}.json"],
    "delete_file": ["read drive/{file_id}.json", "write drive/{file_id}.json"],
    "share_file": ["post drive", "answer drive/{file_id}.json"],
    # Statements are files, as banks offer them. An order, also to change a standing one, is a request to the bank.
    "get_iban": ["read bank/account.json"],
    "get_balance": ["read bank/account.json"],
    "get_most_recent_transactions": ["read bank/transactions.json"],
    "get_scheduled_transactions": ["read bank/scheduled.json"],
    "send_money": ["post bank"],
    "schedule_transaction": ["post bank"],
    "update_scheduled_transaction": ["post bank"],
    "read_file": ["read documents/{file_path}"],
    # What the user has stored about himself.
    "get_user_info": ["read profile/user.json"],
    "get_user_information": ["read profile/user.json"],
    "update_user_info": ["read profile/user.json", "write profile/user.json"],
    "update_password": ["read profile/user.json", "write profile/user.json"],
    # The workspace of a company at a service, for which the user has a token: messages, members and channels.
    "get_channels": ["get slack"],
    "read_channel_messages": ["get slack"],
    "read_inbox": ["get slack"],
    "get_users_in_channel": ["get slack"],
    "send_direct_message": ["post slack"],
    "send_channel_message": ["post slack"],
    "add_user_to_channel": ["post slack"],
    "invite_user_to_slack": ["post slack"],
    "remove_user_from_slack": ["post slack"],
    # Public pages, without an account.
    "get_webpage": ["get web"],
    "post_webpage": ["post web"],
    # Public offers and reviews, without an account. A reservation sends the user's telephone number, which the tool reads.
    **dict.fromkeys(
        [
            "get_all_hotels_in_city",
            "get_hotels_prices",
            "get_hotels_address",
            "get_rating_reviews_for_hotels",
            "get_all_restaurants_in_city",
            "get_restaurants_address",
            "get_rating_reviews_for_restaurants",
            "get_cuisine_type_for_restaurants",
            "get_dietary_restrictions_for_all_restaurants",
            "get_contact_information_for_restaurants",
            "get_price_for_restaurants",
            "check_restaurant_opening_hours",
            "get_all_car_rental_companies_in_city",
            "get_car_types_available",
            "get_rating_reviews_for_car_rental",
            "get_car_rental_address",
            "get_car_fuel_options",
            "get_car_price_per_day",
            "get_flight_information",
        ],
        ["get travel"],
    ),
    "reserve_hotel": ["read profile/user.json", "post travel"],
    "reserve_restaurant": ["read profile/user.json", "post travel"],
    "reserve_car_rental": ["read profile/user.json", "post travel"],
}


class Effects:
    """Effects of one call, each with the places of its kind."""

    def __init__(self, function, arguments, files):
        """Takes the files that there are: one that is missing is not read."""
        self.read, self.get, self.post, self.write, self.answer = [], [], [], [], []
        for effect in TABLE[function]:
            kind, place = effect.removesuffix(" if participants").split()
            if effect.endswith(" if participants") and not arguments.get("participants"):
                continue
            places = named(place, arguments, files)
            if kind in ("read", "answer"):
                places = [place for place in places if place in files]
            getattr(self, kind).extend(places)
        folders = {place.split("/")[0] for place in self.read + self.answer}
        # What the call reads before it sends, and what it has read in the end. The answer to a `post` is of no interest.
        self.reads_private_files = bool(folders)
        self.reads_files_of_others = any(FOLDERS[folder] for folder in folders)
        self.reads_private = self.reads_private_files or any(SERVICES[service] for service in self.get)
        self.reads_of_others = self.reads_files_of_others or bool(self.get)

    def kinds(self):
        """Ways out that the call takes."""
        ways = {"send": self.post, "request": self.get, "write": self.write}
        return [way for way, places in ways.items() if places]


def named(place, arguments, files):
    """Returns the places that a pattern names."""
    if place.endswith("/*"):
        return [file for file in files if file.startswith(place[:-1])]
    if "{" not in place:
        return [place]
    before, name, after = place.replace("}", "{").split("{")
    values = arguments.get(name) or []
    if not isinstance(values, list):
        values = [values]
    values = [value.get("file_id") if isinstance(value, dict) else value for value in values]
    return [f"{before}{value}{after}" for value in values if value is not None]


def folder_of(function):
    """Returns the folder of a function, and whether it writes there; `None` without a folder."""
    effects = [effect.split() for effect in TABLE[function]]
    folders = {effect[1].split("/")[0] for effect in effects if effect[0] in ("read", "write", "answer")}
    assert len(folders) <= 1, function
    return (folders.pop(), any(effect[0] == "write" for effect in effects)) if folders else None


def service_of(function):
    """Returns the service of a function, and whether it sends there; `None` without a service."""
    effects = [effect.split() for effect in TABLE[function] if effect.split()[0] in ("get", "post")]
    assert len(effects) <= 1, function
    return (effects[0][1], effects[0][0] == "post") if effects else None
